// The story of test/clients/story.system.test.ts with the client that oapi-codegen generates: test/clients/generated.release.test.ts runs it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"

	"story/relay"
)

var (
	ctx       = context.Background()
	origin    = os.Getenv("RELAY_URL")
	workspace = os.Getenv("RELAY_WORKSPACE")
)

// must ends the story if a request was not sent or its answer not read.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func equal[T comparable](what string, got, expected T) {
	if got != expected {
		log.Fatalf("%s: %v instead of %v", what, got, expected)
	}
}

// answered returns the body of an answer if it is the expected one.
func answered[T any](body *T, other []byte) T {
	if body == nil {
		log.Fatal("another answer: " + string(other))
	}
	return *body
}

func main() {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("RELAY_API_KEY"))
		return nil
	}
	client := must(relay.NewClientWithResponses(origin+"/api/"+workspace, relay.WithRequestEditorFn(authorize)))

	latest := must(client.ListEventsWithResponse(ctx, &relay.ListEventsParams{After: new("latest")}))
	begun := answered(latest.JSON200, latest.Body).Meta.NextCursor

	var input relay.DestinationInput
	check(input.FromDestinationInputWebhook(relay.DestinationInputWebhook{
		Name:          "Go",
		ConnectorType: relay.DestinationInputWebhookConnectorTypeWebhook,
		Config:        relay.DestinationConfigWebhook{Url: os.Getenv("TARGET_URL")},
		Credentials:   relay.DestinationCredentialsWebhook{Secret: new(os.Getenv("SECRET"))},
	}))
	createdDestination := must(client.CreateDestinationWithResponse(ctx, nil, input))
	destination := answered(createdDestination.JSON201, createdDestination.Body).Data

	var repositories []string
	for range 2 {
		once := &relay.CreateRepositoryParams{IdempotencyKey: new("go")}
		created := must(client.CreateRepositoryWithResponse(ctx, once, relay.RepositoryInput{RepoId: "GO", Name: "Invoices"}))
		repositories = append(repositories, answered(created.JSON201, created.Body).Data.Id)
	}
	repository := repositories[0]
	equal("the repetition of a request", repositories[1], repository)
	wiring := relay.ConnectionInput{Name: "Go", RepositoryIds: []string{repository}, DestinationIds: []string{destination.Id}}
	createdConnection := must(client.CreateConnectionWithResponse(ctx, nil, wiring))
	connection := answered(createdConnection.JSON201, createdConnection.Body).Data

	for number := range 3 {
		send(fmt.Sprintf("D%d", number))
	}
	var ids []string
	for page := 1; page <= 2; page++ {
		listed := must(client.ListDocumentsWithResponse(ctx, &relay.ListDocumentsParams{RepoId: new("GO"), PerPage: new(2), Page: &page}))
		documents := answered(listed.JSON200, listed.Body)
		equal("the number of documents", documents.Meta.Total, 3)
		equal("the length of the page", len(documents.Data), []int{2, 1}[page-1])
		for _, document := range documents.Data {
			ids = append(ids, document.Id)
		}
	}
	for _, id := range ids {
		document := waitFor(client, id)
		equal("the status", document.Attributes.Status, "delivered")
		equal("the destination", document.Attributes.Deliveries[0].DestinationName, "Go")
		equal("the size", document.Attributes.SizeBytes, 5)
	}

	content := must(client.GetDocumentContentWithResponse(ctx, ids[0]))
	equal("the content", string(content.Body), "hello")
	tried := must(client.ListDocumentAttemptsWithResponse(ctx, ids[0], nil))
	attempts := answered(tried.JSON200, tried.Body).Data
	equal("the number of attempts", len(attempts), 1)
	equal("the outcome", attempts[0].Attributes.Outcome, "delivered")
	refused := must(client.RetryDocumentWithResponse(ctx, ids[0], nil))
	equal("the code", answered(refused.JSON409, refused.Body).Error.Code, "nothing_to_retry")
	invalid := must(client.CreateRepositoryWithResponse(ctx, nil, relay.RepositoryInput{Name: "A"}))
	equal("the invalid value", (*answered(invalid.JSON422, invalid.Body).Error.Details)[0].Path, "repo_id")

	var subjects []string
	for before := (*string)(nil); ; {
		listed := must(client.ListAuditLogsWithResponse(ctx, &relay.ListAuditLogsParams{PerPage: new(1), Before: before}))
		entries := answered(listed.JSON200, listed.Body)
		for _, entry := range entries.Data {
			subjects = append(subjects, entry.Attributes.SubjectId)
		}
		if before = entries.Meta.NextCursor; before == nil {
			break
		}
	}
	for _, id := range []string{destination.Id, repository, connection.Id} {
		equal("an entry of the audit log", slices.Contains(subjects, id), true)
	}
	csv := must(client.ExportAuditLogsWithResponse(ctx, &relay.ExportAuditLogsParams{SubjectId: &destination.Id}))
	equal("the CSV", strings.Contains(string(csv.Body), "Destination Go (webhook) was created."), true)

	slices.Sort(ids)
	delivered := follow(client, begun, "document.delivered", 3)
	slices.Sort(delivered)
	equal("the delivered documents", strings.Join(delivered, " "), strings.Join(ids, " "))
	received := follow(client, begun, "document.received", 3)
	slices.Sort(received)
	equal("the received documents", strings.Join(received, " "), strings.Join(ids, " "))

	unwired := must(client.DeleteConnectionWithResponse(ctx, connection.Id, nil))
	equal("the deleted connection", answered(unwired.JSON200, unwired.Body).Message != "", true)
	equal("deleted", must(client.DeleteDestinationWithResponse(ctx, destination.Id, nil)).HTTPResponse.StatusCode, 204)
	equal("deleted", must(client.DeleteRepositoryWithResponse(ctx, repository, nil)).HTTPResponse.StatusCode, 204)
	gone := must(client.GetDestinationWithResponse(ctx, destination.Id))
	equal("the code", answered(gone.JSON404, gone.Body).Error.Code, "not_found")
	fmt.Println("The story has ended.")
}

// send sends a document as a source system does.
func send(docId string) {
	query := "create&pVersion=0045&contRep=GO&compId=data&docId=" + docId
	request := must(http.NewRequest(http.MethodPut, origin+"/receiver/"+workspace+"?"+query, strings.NewReader("hello")))
	request.Header.Set("Content-Type", "text/plain")
	answer := must(http.DefaultClient.Do(request))
	check(answer.Body.Close())
	equal("the answer to a source system", answer.StatusCode, 201)
}

func waitFor(client *relay.ClientWithResponses, id string) relay.SingleDocument {
	for range 3 {
		read := must(client.GetDocumentWithResponse(ctx, id, &relay.GetDocumentParams{WaitSeconds: new(30)}))
		document := answered(read.JSON200, read.Body).Data
		switch document.Attributes.Status {
		case "pending", "retrying":
		default:
			return document
		}
	}
	log.Fatal("the document has no final status")
	panic("unreachable")
}

// follow returns the documents of the first events of this type, in pages of two.
func follow(client *relay.ClientWithResponses, after string, event string, count int) []string {
	var ids []string
	for len(ids) < count {
		query := &relay.ListEventsParams{After: &after, Types: &event, Limit: new(2), WaitSeconds: new(30)}
		listed := must(client.ListEventsWithResponse(ctx, query))
		events := answered(listed.JSON200, listed.Body)
		if len(events.Data) == 0 {
			log.Fatal("30 seconds have passed without an event")
		}
		for _, event := range events.Data {
			ids = append(ids, event.Attributes.Data["document_id"].(string))
		}
		after = events.Meta.NextCursor
	}
	return ids
}
