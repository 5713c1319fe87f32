import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.AuditLogsApi;
import org.openapitools.client.api.ConnectionsApi;
import org.openapitools.client.api.DestinationsApi;
import org.openapitools.client.api.DocumentsApi;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.RepositoriesApi;
import org.openapitools.client.model.ConnectionInput;
import org.openapitools.client.model.DestinationConfigWebhook;
import org.openapitools.client.model.DestinationCredentialsWebhook;
import org.openapitools.client.model.DestinationInput;
import org.openapitools.client.model.DestinationInputWebhook;
import org.openapitools.client.model.ErrorBody;
import org.openapitools.client.model.RepositoryInput;

/**
 * The story of test/clients/story.system.test.ts with the client that openapi-generator generates:
 * test/clients/generated.release.test.ts runs it.
 */
public class Story {
    private static final String ORIGIN = System.getenv("RELAY_URL");
    private static final String WORKSPACE = System.getenv("RELAY_WORKSPACE");

    interface Call {
        Object execute() throws ApiException;
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.setBasePath(ORIGIN + "/api/" + WORKSPACE);
        client.setBearerToken(System.getenv("RELAY_API_KEY"));
        // Milliseconds: longer than a request with wait_seconds.
        client.setReadTimeout(60_000);
        DestinationsApi destinations = new DestinationsApi(client);
        RepositoriesApi repositories = new RepositoriesApi(client);
        ConnectionsApi connections = new ConnectionsApi(client);
        DocumentsApi documents = new DocumentsApi(client);
        AuditLogsApi auditLogs = new AuditLogsApi(client);
        EventsApi events = new EventsApi(client);

        String begun = events.listEvents().after("latest").execute().getMeta().getNextCursor();
        DestinationInputWebhook webhook = new DestinationInputWebhook()
            .name("Java")
            .connectorType(DestinationInputWebhook.ConnectorTypeEnum.WEBHOOK)
            .config(new DestinationConfigWebhook().url(URI.create(System.getenv("TARGET_URL"))))
            .credentials(new DestinationCredentialsWebhook().secret(System.getenv("SECRET")));
        String destination = destinations.createDestination(new DestinationInput(webhook)).execute().getData().getId();
        RepositoryInput invoices = new RepositoryInput().repoId("JAVA").name("Invoices");
        String repository = repositories.createRepository(invoices).idempotencyKey("java").execute().getData().getId();
        String repeated = repositories.createRepository(invoices).idempotencyKey("java").execute().getData().getId();
        equal("the repetition of a request", repeated, repository);
        ConnectionInput wiring =
            new ConnectionInput().name("Java").addRepositoryIdsItem(repository).addDestinationIdsItem(destination);
        String connection = connections.createConnection(wiring).execute().getData().getId();

        for (String docId : List.of("D1", "D2", "D3")) send(docId);
        List<String> ids = new ArrayList<>();
        for (int page = 1; page <= 2; page++) {
            var listed = documents.listDocuments().repoId("JAVA").perPage(2).page(page).execute();
            equal("the number of documents", listed.getMeta().getTotal(), 3L);
            equal("the length of the page", listed.getData().size(), page == 1 ? 2 : 1);
            listed.getData().forEach(document -> ids.add(document.getId()));
        }
        for (String id : ids) {
            var attributes = documents.getDocument(id).waitSeconds(30).execute().getData().getAttributes();
            for (int i = 0; i < 2 && Set.of("pending", "retrying").contains(attributes.getStatus()); i++) {
                attributes = documents.getDocument(id).waitSeconds(30).execute().getData().getAttributes();
            }
            equal("the status", attributes.getStatus(), "delivered");
            equal("the destination", attributes.getDeliveries().get(0).getDestinationName(), "Java");
            equal("the size", attributes.getSizeBytes(), 5L);
        }

        String id = ids.get(0);
        equal("the content", Files.readString(documents.getDocumentContent(id).execute().toPath()), "hello");
        var attempts = documents.listDocumentAttempts(id).execute().getData();
        equal("the number of attempts", attempts.size(), 1);
        equal("the outcome", attempts.get(0).getAttributes().getOutcome(), "delivered");
        equal("the code", refused(409, () -> documents.retryDocument(id).execute()).getCode(), "nothing_to_retry");
        RepositoryInput invalid = new RepositoryInput().repoId("").name("A");
        var details = refused(422, () -> repositories.createRepository(invalid).execute()).getDetails();
        equal("the invalid value", details.get(0).getPath(), "repo_id");

        List<String> subjects = new ArrayList<>();
        String before = null;
        do {
            var listed = auditLogs.listAuditLogs().perPage(1).before(before).execute();
            listed.getData().forEach(entry -> subjects.add(entry.getAttributes().getSubjectId()));
            before = listed.getMeta().getNextCursor();
        } while (before != null);
        equal("the audit log", subjects.containsAll(List.of(destination, repository, connection)), true);
        String csv = auditLogs.exportAuditLogs().subjectId(destination).execute();
        equal("the CSV", csv.contains("Destination Java (webhook) was created."), true);

        equal("the delivered documents", follow(events, begun, "document.delivered"), sorted(ids));
        equal("the received documents", follow(events, begun, "document.received"), sorted(ids));

        connections.deleteConnection(connection).execute();
        destinations.deleteDestination(destination).execute();
        repositories.deleteRepository(repository).execute();
        equal("the code", refused(404, () -> destinations.getDestination(destination).execute()).getCode(), "not_found");
        System.out.println("The story has ended.");
        // The threads of the HTTP clients would keep the process.
        System.exit(0);
    }

    /** Sends a document as a source system does. */
    private static void send(String docId) throws IOException, InterruptedException {
        String query = "create&pVersion=0045&contRep=JAVA&compId=data&docId=" + docId;
        HttpRequest request = HttpRequest.newBuilder(URI.create(ORIGIN + "/receiver/" + WORKSPACE + "?" + query))
            .PUT(HttpRequest.BodyPublishers.ofString("hello"))
            .header("Content-Type", "text/plain")
            .build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding());
        equal("the answer to a source system", answer.statusCode(), 201);
    }

    /** Returns the documents of the first three events of this type, which it reads in pages of two, sorted. */
    private static List<String> follow(EventsApi events, String begun, String type) throws ApiException {
        List<String> ids = new ArrayList<>();
        String after = begun;
        while (ids.size() < 3) {
            var page = events.listEvents().after(after).types(type).limit(2).waitSeconds(30).execute();
            equal("30 seconds have passed without an event", page.getData().isEmpty(), false);
            page.getData().forEach(event -> ids.add((String) event.getAttributes().getData().get("document_id")));
            after = page.getMeta().getNextCursor();
        }
        return sorted(ids);
    }

    private static List<String> sorted(List<String> texts) {
        return texts.stream().sorted().toList();
    }

    private static ErrorBody refused(int status, Call call) {
        try {
            call.execute();
        } catch (ApiException exception) {
            equal("the status of the answer", exception.getCode(), status);
            return JSON.getGson().fromJson(exception.getResponseBody(), org.openapitools.client.model.Error.class).getError();
        }
        throw new AssertionError("the request was not refused");
    }

    private static void equal(String what, Object got, Object expected) {
        if (!Objects.equals(got, expected)) throw new AssertionError(what + ": " + got + " instead of " + expected);
    }
}
