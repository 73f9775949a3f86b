// A tool in Go: an HTTP server that answers a CloudEvent with a CloudEvent.
package main

import (
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"
)

const largestCall = 1_000_000 // bytes

var signs = []struct {
	value int
	text  string
}{
	{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"},
	{40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
}

func writeRoman(number int) string {
	var roman strings.Builder
	for _, sign := range signs {
		for ; number >= sign.value; number -= sign.value {
			roman.WriteString(sign.text)
		}
	}
	return roman.String()
}

func receive(response http.ResponseWriter, request *http.Request) {
	var arguments struct {
		Number int `json:"number"`
	}
	// Another address of the server is no call: the platform looks at /readyz.
	if request.Method != http.MethodPost {
		return
	}
	body := http.MaxBytesReader(response, request.Body, largestCall)
	err := json.NewDecoder(body).Decode(&arguments)
	headers := response.Header()
	headers.Set("Content-Type", "application/json")
	headers.Set("ce-specversion", "1.0")
	headers.Set("ce-id", rand.Text())
	headers.Set("ce-source", "/examples/go")
	headers.Set("ce-type", "example.roman.go.done")
	headers.Set("ce-replyid", request.Header.Get("ce-correlationid"))
	reply := any(map[string]string{"roman": writeRoman(arguments.Number)})
	if err != nil || arguments.Number < 1 || arguments.Number > 3999 {
		// An error with a reason goes to the model, which may correct its call.
		problem := map[string]string{"reason": "invalid_arguments", "message": "number: send 1 to 3999"}
		reply = map[string]any{"error": problem}
	}
	if err := json.NewEncoder(response).Encode(reply); err != nil {
		log.Print(err)
	}
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	http.HandleFunc("/", receive)
	log.Fatal(http.ListenAndServe(":"+port, nil))
}
