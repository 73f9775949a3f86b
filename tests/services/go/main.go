// A tool made with the Go SDK of CloudEvents, as its samples make one.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/uuid"
)

type arguments struct {
	Name string `json:"name"`
}

type greeting struct {
	Greeting string `json:"greeting"`
}

func greet(call cloudevents.Event, withReplyID bool) (*cloudevents.Event, cloudevents.Result) {
	var given arguments
	if err := call.DataAs(&given); err != nil {
		return nil, cloudevents.NewHTTPResult(http.StatusBadRequest, "no arguments: %s", err)
	}
	reply := cloudevents.NewEvent()
	reply.SetID(uuid.NewString())
	reply.SetSource("/services/go")
	reply.SetType(call.Type() + ".done")
	if withReplyID {
		reply.SetExtension("replyid", call.Extensions()["correlationid"])
	}
	if err := reply.SetData(cloudevents.ApplicationJSON, greeting{"Hello " + given.Name}); err != nil {
		return nil, cloudevents.NewHTTPResult(http.StatusInternalServerError, "no data: %s", err)
	}
	return &reply, nil
}

func handler(withReplyID bool) http.Handler {
	protocol, err := cloudevents.NewHTTP()
	if err != nil {
		log.Fatal(err)
	}
	receive := func(call cloudevents.Event) (*cloudevents.Event, cloudevents.Result) {
		return greet(call, withReplyID)
	}
	found, err := cloudevents.NewHTTPReceiveHandler(context.Background(), protocol, receive)
	if err != nil {
		log.Fatal(err)
	}
	return found
}

func main() {
	http.Handle("/go", handler(false))
	http.Handle("/go-replyid", handler(true))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
