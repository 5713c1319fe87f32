import { may, type Level } from './api.ts'
import { lazy, type Lazy } from './ui/lazy.ts'

interface Screen {
  /** Lowest level of a key that sees the entry. Without it, every key does. */
  level?: Level
  /** True if the navigation has no entry: other screens lead there. */
  isLinked?: true
  /** Path of the icon in the navigation, in a box of 16 by 16. */
  icon: string
  /** Shown at the address of the entry. */
  List: Lazy
  /** Shown at the address of one of its things. */
  One?: Lazy<{ id: string }>
}

/** The screens, by the first part of their address, in the order of the navigation. The names of the entries stand in texts/common.ts. */
export const screens = {
  overview: {
    icon: 'M2 13.500h12M3.500 11V8M7 11V4.500M10.500 11V6.500M13.500 11V3',
    List: lazy(async () => (await import('./screens/overview.ts')).OverviewScreen),
  },
  start: {
    isLinked: true,
    icon: '',
    List: lazy(async () => (await import('./screens/start.ts')).StartScreen),
  },
  workspaces: {
    isLinked: true,
    icon: '',
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
    icon: 'M2.500 4h3.500l4 8h3.500M2.500 12h3.500l4-8h3.500',
    List: lazy(async () => (await import('./screens/connections.ts')).ConnectionsScreen),
    One: lazy(async () => (await import('./screens/connection.ts')).ConnectionScreen),
  },
  destinations: {
    icon: 'M2 8h5m0 0c3 0 2.500-4 6-4M7 8c3 0 2.500 4 6 4',
    List: lazy(async () => (await import('./screens/destinations.ts')).DestinationsScreen),
    One: lazy(async () => (await import('./screens/destination.ts')).DestinationScreen),
  },
  repositories: {
    icon: 'M2.500 5.500h11v8h-11zM4 5.500V3h8v2.500M6 8.500h4',
    List: lazy(async () => (await import('./screens/repositories.ts')).RepositoriesScreen),
    One: lazy(async () => (await import('./screens/repository.ts')).RepositoryScreen),
  },
  enrichments: {
    icon: 'M3 12.500V6M3 9h4M8 5.500h5.500M8 9h5.500M8 12.500h5.500M3 3.500v.3',
    List: lazy(async () => (await import('./screens/enrichments.ts')).EnrichmentsScreen),
    One: lazy(async () => (await import('./screens/enrichment.ts')).EnrichmentScreen),
  },
  audit: {
    icon: 'M3 2.500h10v11H3zM5.500 5.500h5M5.500 8h5M5.500 10.500h3',
    List: lazy(async () => (await import('./screens/audit.ts')).AuditScreen),
  },
  keys: {
    level: 'admin',
    icon: 'M5.500 7.500a3 3 0 1 0 .01 6 3 3 0 0 0-.01-6zM7.700 8.400L13.500 2.500M11 5l2 2',
    List: lazy(async () => (await import('./screens/keys.ts')).KeysScreen),
  },
  settings: {
    icon: 'M2.500 4.500h6M11.500 4.500h2M10 3v3M2.500 11.500h2M7.500 11.500h6M6 10v3',
    List: lazy(async () => (await import('./screens/settings.ts')).SettingsScreen),
  },
  notifications: {
    icon: 'M4 11.500V7a4 4 0 0 1 8 0v4.500l1 1H3zM6.800 14.200h2.400',
    List: lazy(async () => (await import('./screens/notifications.ts')).NotificationsScreen),
    One: lazy(async () => (await import('./screens/notification.ts')).NotificationScreen),
  },
  subscriptions: {
    icon: 'M2.500 13.500h.01M2.500 9.500a4 4 0 0 1 4 4M2.500 6a7.500 7.500 0 0 1 7.500 7.500M2.500 2.500a11 11 0 0 1 11 11',
    List: lazy(async () => (await import('./screens/subscriptions.ts')).SubscriptionsScreen),
    One: lazy(async () => (await import('./screens/subscription.ts')).SubscriptionScreen),
  },
} satisfies Record<string, Screen>

export type ScreenName = keyof typeof screens

/** Returns the screen with this name. */
export const screenNamed = (name: string): Screen | undefined => (Object.hasOwn(screens, name) ? screens[name as ScreenName] : undefined)

/** Loads the modules of all screens, one after the other. A module that fails to load is loaded when its screen is shown. */
export const preloadScreens = async (): Promise<void> => {
  for (const { List, One } of Object.values<Screen>(screens)) {
    await List.preload().catch(() => {})
    await One?.preload().catch(() => {})
  }
}

const screenNames = Object.keys(screens) as ScreenName[]

/** Returns the names of the screens in the navigation: those that the key of the session may use. */
export const usableScreens = (): ScreenName[] =>
  screenNames.filter((name) => {
    const { level = 'viewer', isLinked = false } = screenNamed(name)!
    return may(level) && !isLinked
  })
