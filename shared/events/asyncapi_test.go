package events_test

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/feira-shop/feira/shared/events"
)

// keys says what the record key of each topic is.
var keys = map[string]string{
	"orders":          "Id of the order.",
	"payments":        "Fingerprint of the card, so that one card is one partition; id of the order where there is no card.",
	"inventory":       "Id of the order; the sku for stock.received.",
	"fraud":           "Id of the order.",
	"loyalty":         "Id of the customer.",
	"analytics":       "Id of the customer.",
	"catalog":         "The sku. The topic is compacted: the latest record of a key is the product as it is.",
	"eventos-usuario": "None, or the id of the user.",
}

// The parts of an AsyncAPI 3.0 document that the shop needs.
type (
	object  = map[string]any
	channel struct {
		Address     string            `yaml:"address"`
		Description string            `yaml:"description"`
		Messages    map[string]object `yaml:"messages,omitempty"`
		Bindings    object            `yaml:"bindings"`
	}
	document struct {
		AsyncAPI           string             `yaml:"asyncapi"`
		Info               object             `yaml:"info"`
		DefaultContentType string             `yaml:"defaultContentType"`
		Servers            object             `yaml:"servers"`
		Channels           map[string]channel `yaml:"channels"`
		Operations         map[string]object  `yaml:"operations"`
		Components         object             `yaml:"components"`
	}
)

func ref(parts ...string) object { return object{"$ref": strings.Join(parts, "/")} }

// short is a type without the domain, as messages are called in the document.
func short(typ string) string { return strings.TrimPrefix(typ, "shop.feira.") }

func asyncAPI() document {
	doc := document{
		AsyncAPI: "3.0.0",
		Info: object{
			"title": "Feira: the events of the shop", "version": "1.0.0",
			"license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
			"description": "CloudEvents 1.0 in binary mode: attributes are record headers, the value is the JSON of the data. " +
				"Records of one key keep their order. A record may come twice; its ce_id tells.",
		},
		DefaultContentType: "application/json",
		Servers: object{"demo": object{"host": "127.0.0.1:9092", "protocol": "kafka",
			"description": "The broker of feira demo; see --kafka-listen."}},
		Channels:   map[string]channel{},
		Operations: map[string]object{},
	}
	messages := object{}
	for _, topic := range events.Topics() {
		c := channelOf(topic)
		for _, e := range events.Published(topic) {
			c.Messages[short(e.EventType())] = ref("#/components/messages", short(e.EventType()))
			messages[short(e.EventType())] = messageOf(e.EventType(), topic, ref("./schemas/"+e.EventType()+".json"))
		}
		if topic.Ticks {
			name := short(events.TickType)
			c.Messages[name] = ref("#/components/messages", name)
			messages[name] = object{"name": events.TickType, "summary": "Nothing unsent up to ce_time. Written while a partition is idle.",
				"headers": ref("#/components/schemas/tick_headers"), "payload": object{"type": "object", "maxProperties": 0}}
		}
		doc.Channels[topic.Name] = c
		if topic.Owner != "" {
			doc.Operations["publish_"+topic.Name] = object{"action": "send", "channel": ref("#/channels", topic.Name),
				"summary": "The service " + topic.Owner + " says what happened."}
		}
	}
	doc.Components = object{"messages": messages, "schemas": object{
		"headers":      headerSchema(events.HeaderSequence, events.HeaderRecorded),
		"tick_headers": headerSchema(),
	}}
	return doc
}

func channelOf(topic events.Topic) channel {
	by := "Anyone may write here; the broker stamps the records."
	if topic.Owner != "" {
		by = "Written by " + topic.Owner + " (ce_source " + topic.Source() + ") and by nobody else."
	}
	config := object{"cleanup.policy": []string{"delete"}, "retention.ms": topic.Retention.Milliseconds()}
	if topic.Retention == events.Forever {
		config["retention.ms"] = -1
	}
	if topic.Compacted {
		config["cleanup.policy"] = []string{"compact"}
	}
	return channel{
		Address:     topic.Name,
		Description: by + " Key: " + keys[topic.Name],
		Messages:    map[string]object{},
		Bindings: object{"kafka": object{"topic": topic.Name, "partitions": topic.Partitions,
			"topicConfiguration": config, "bindingVersion": "0.5.0"}},
	}
}

func messageOf(typ string, topic events.Topic, schema object) object {
	if typ == topic.Plain {
		return object{"name": typ, "summary": "JSON alone: the headers of CloudEvents are not needed. Examples: golden/" + typ + "/",
			"payload": object{"schemaFormat": "application/schema+json;version=draft-07", "schema": schema}}
	}
	return object{
		"name":    typ,
		"summary": "Examples: golden/" + typ + "/",
		"headers": ref("#/components/schemas/headers"),
		"payload": object{"schemaFormat": "application/schema+json;version=draft-07", "schema": schema},
		"bindings": object{"kafka": object{"key": object{"type": "string", "description": keys[topic.Name]},
			"bindingVersion": "0.5.0"}},
	}
}

// headerSchema describes the headers; further says which of the optional ones are always there.
func headerSchema(further ...string) object {
	text := func(description string) object { return object{"type": "string", "description": description} }
	number := object{"type": "string", "pattern": "^[0-9]+$"}
	at := object{"type": "string", "format": "date-time"}
	required := []string{events.HeaderSpecVersion, events.HeaderID, events.HeaderSource, events.HeaderType,
		events.HeaderTime, events.HeaderContentType}
	return object{
		"type":     "object",
		"required": append(required, further...),
		"properties": object{
			events.HeaderSpecVersion: object{"const": "1.0"},
			events.HeaderID:          text("UUIDv7 of the event"),
			events.HeaderSource:      text("Owner of the topic, /feira/<service>"),
			events.HeaderType:        text("Name and version of what happened"),
			events.HeaderTime:        at,
			events.HeaderSubject:     text("The stream it belongs to"),
			events.HeaderSequence:    number,
			events.HeaderPrevious:    number,
			events.HeaderRecorded:    at,
			events.HeaderCorrelation: text("The first request of the whole story"),
			events.HeaderCausation:   text("The event or command it answers"),
			events.HeaderActor:       text("Who caused it"),
			events.HeaderTraceparent: text("W3C trace context"),
			events.HeaderContentType: object{"const": "application/json"},
		},
	}
}

func TestAsyncAPISaysWhatTheTypesSay(t *testing.T) {
	writes(t)
	for _, topic := range events.Topics() {
		if keys[topic.Name] == "" {
			t.Errorf("say what the key of %s is", topic.Name)
		}
	}
	var text bytes.Buffer
	text.WriteString("# Generated from the Go types by go test ./shared/events -update. Do not edit.\n")
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(asyncAPI()); err != nil {
		t.Fatal(err)
	}
	sameFile(t, "asyncapi.yaml", text.Bytes())
}

// The document and the codec cannot drift apart: every header that is written is in the schema.
func TestAsyncAPIKnowsEveryHeader(t *testing.T) {
	t.Parallel()
	known, ok := headerSchema()["properties"].(object)
	if !ok {
		t.Fatal("no properties")
	}
	written := events.Headers(sample())
	for _, h := range written {
		if known[h.Key] == nil {
			t.Errorf("header %s is not described", h.Key)
		}
	}
	if len(known) != len(written) {
		t.Errorf("%d headers are described, %d written", len(known), len(written))
	}
}
