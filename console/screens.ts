import { may, type Level } from './api.ts'
import { lazy, type Lazy } from './ui/lazy.ts'

interface Screen {
  /** Lowest level of a key that sees the screen. Without it, every key does. */
  level?: Level
  /** Lowest level of a key whose navigation has the entry. Others read the screen where links lead to it. */
  entryLevel?: Level
  /** True if the navigation has neither an entry nor a tab: other screens lead there. */
  isLinked?: true
  /** The screen on whose entry this one is a tab. */
  entry?: 'overview' | 'repositories' | 'notifications' | 'settings'
  /** Path of the icon of the entry, in a box of 16 by 16. */
  icon?: string
  /** Shown at the address of the entry. */
  List: Lazy
  /** Shown at the address of one of its things. */
  One?: Lazy<{ id: string }>
}

/** The screens, by the first part of their address, in the order of the navigation. The names of the entries stand in texts/common.ts. */
const screens = {
  overview: {
    icon: 'M2 13.500h12M3.500 11V8M7 11V4.500M10.500 11V6.500M13.500 11V3',
    List: lazy(async () => (await import('./screens/overview.ts')).OverviewScreen),
  },
  start: {
    isLinked: true,
    entry: 'overview',
    List: lazy(async () => (await import('./screens/start.ts')).StartScreen),
  },
  workspaces: {
    isLinked: true,
    List: lazy(async () => (await import('./screens/workspaces.ts')).WorkspacesScreen),
  },
  documents: {
    icon: 'M4 2h5.500L13 5.500V14H4zM9 2.500V6h3.500M6 8.500h5M6 11h5',
    List: lazy(async () => (await import('./screens/documents.ts')).DocumentsScreen),
    One: lazy(async () => (await import('./screens/document.ts')).DocumentScreen),
  },
  attention: {
    icon: 'M8 2.500l6 11H2zM8 6.500v3.500M8 11.700v.6',
    List: lazy(async () => (await import('./screens/attention.ts')).AttentionScreen),
  },
  requests: {
    icon: 'M2 5.500h9M8.500 3l2.500 2.500L8.500 8M14 10.500H5M7.500 8L5 10.500 7.500 13',
    List: lazy(async () => (await import('./screens/requests.ts')).RequestsScreen),
    One: lazy(async () => (await import('./screens/request.ts')).RequestScreen),
  },
  connections: {
    entryLevel: 'member',
    icon: 'M2.500 4h3.500l4 8h3.500M2.500 12h3.500l4-8h3.500',
    List: lazy(async () => (await import('./screens/connections.ts')).ConnectionsScreen),
    One: lazy(async () => (await import('./screens/connection.ts')).ConnectionScreen),
  },
  destinations: {
    entryLevel: 'member',
    icon: 'M2 8h5m0 0c3 0 2.500-4 6-4M7 8c3 0 2.500 4 6 4',
    List: lazy(async () => (await import('./screens/destinations.ts')).DestinationsScreen),
    One: lazy(async () => (await import('./screens/destination.ts')).DestinationScreen),
  },
  repositories: {
    entryLevel: 'member',
    icon: 'M2.500 5.500h11v8h-11zM4 5.500V3h8v2.500M6 8.500h4',
    List: lazy(async () => (await import('./screens/repositories.ts')).RepositoriesScreen),
    One: lazy(async () => (await import('./screens/repository.ts')).RepositoryScreen),
  },
  enrichments: {
    entry: 'repositories',
    List: lazy(async () => (await import('./screens/enrichments.ts')).EnrichmentsScreen),
    One: lazy(async () => (await import('./screens/enrichment.ts')).EnrichmentScreen),
  },
  notifications: {
    entryLevel: 'member',
    icon: 'M4 11.500V7a4 4 0 0 1 8 0v4.500l1 1H3zM6.800 14.200h2.400',
    List: lazy(async () => (await import('./screens/notifications.ts')).NotificationsScreen),
    One: lazy(async () => (await import('./screens/notification.ts')).NotificationScreen),
  },
  subscriptions: {
    entry: 'notifications',
    List: lazy(async () => (await import('./screens/subscriptions.ts')).SubscriptionsScreen),
    One: lazy(async () => (await import('./screens/subscription.ts')).SubscriptionScreen),
  },
  settings: {
    entryLevel: 'member',
    icon: 'M2.500 4.500h6M11.500 4.500h2M10 3v3M2.500 11.500h2M7.500 11.500h6M6 10v3',
    List: lazy(async () => (await import('./screens/settings.ts')).SettingsScreen),
  },
  keys: {
    level: 'admin',
    entry: 'settings',
    List: lazy(async () => (await import('./screens/keys.ts')).KeysScreen),
  },
  holds: {
    entry: 'settings',
    List: lazy(async () => (await import('./screens/holds.ts')).HoldsScreen),
  },
  audit: {
    entry: 'settings',
    List: lazy(async () => (await import('./screens/audit.ts')).AuditScreen),
  },
} satisfies Record<string, Screen>

export type ScreenName = keyof typeof screens

/** Returns the screen with this name. */
export const screenNamed = (name: string): Screen | undefined => (Object.hasOwn(screens, name) ? screens[name as ScreenName] : undefined)

/** Loads the modules of all screens, one after the other. If one fails to load, the page is loaded again when its screen is shown. */
export const preloadScreens = async (): Promise<void> => {
  for (const { List, One } of Object.values<Screen>(screens)) {
    await List.preload().catch(() => {})
    await One?.preload().catch(() => {})
  }
}

const screenNames = Object.keys(screens) as ScreenName[]

/** Returns the screen on whose entry in the navigation this one is found. */
export const entryOf = (name: string): ScreenName => screenNamed(name)?.entry ?? (name as ScreenName)

const inNavigation = screenNames.filter((name) => !screenNamed(name)!.isLinked)

/** Returns the names of the entries of the navigation for the key of the session. */
export const entries = (): ScreenName[] =>
  inNavigation.filter((name) => entryOf(name) === name && may(screenNamed(name)!.entryLevel ?? 'viewer'))

/** Returns the names of the screens that share an entry with this one, if there are several that the key of the session may see. */
export const tabsOf = (name: string): ScreenName[] => {
  const tabs = inNavigation.filter((each) => entryOf(each) === entryOf(name) && may(screenNamed(each)!.level ?? 'viewer'))
  return tabs.length > 1 ? tabs : []
}
