package strictjson_test

import (
	"errors"
	"fmt"

	"github.com/joinery-sdk/joinery/internal/strictjson"
)

func ExampleParse() {
	_, err := strictjson.Parse([]byte("{\n  \"name\": default\n}"))
	fmt.Println(err)
	// Output: line 2: invalid character 'd' looking for beginning of value
}

func ExampleParsePrefix() {
	first, rest, line, _ := strictjson.ParsePrefix([]byte("{\"a\": 1}\n{\"b\": 2}"), 1)
	fmt.Println(string(first.Raw()), len(rest), line)
	// Output: {"a":1} 9 1
}

func ExampleDecoder() {
	n, _ := strictjson.Parse([]byte("{\n  \"nmae\": \"default\",\n  \"weight\": \"10\"\n}"))
	var pool struct {
		Name   string `json:"name"`
		Weight int    `json:"weight"`
	}
	var d strictjson.Decoder
	for _, p := range d.Decode(&n, &pool) {
		fmt.Printf("line %d: %s: %s\n", p.Line, p.Path, p.Detail)
	}
	// Output:
	// line 2: nmae: unknown field "nmae": did you mean "name"?
	// line 3: weight: want an integer, got the string "10" (write it without quotes: 10)
}

func ExampleNode() {
	n, _ := strictjson.Parse([]byte("{\"spec\":\n  {\"zones\": [\"a\",\n    \"b\"]}}"))
	fmt.Println(n.Kind, n.At("spec.zones[1]"), n.Get("spec").Get("zones").Items[1].Text)
	// Output: an object 3 b
}

func ExampleMapKey() {
	fmt.Println("limits"+strictjson.MapKey("cpu"), "limits"+strictjson.MapKey("nvidia.com/gpu"))
	// Output: limits.cpu limits["nvidia.com/gpu"]
}

func ExampleParseQuantity() {
	_, err := strictjson.ParseQuantity("4GB")
	fmt.Println(err)
	// Output: "4GB" is not a quantity (such as 500m, 2, 1.5Gi) (did you mean "4G"?)
}

func ExampleQuote() {
	fmt.Println(strictjson.Quote("a\tb"))
	// Output: "a\tb"
}

func ExampleKind() {
	fmt.Println(strictjson.Number, strictjson.Array)
	// Output: a number a list
}

func ExampleMember() {
	n, _ := strictjson.Parse([]byte("{\n \"a\": 1}"))
	fmt.Println(n.Members[0].Key, n.Members[0].Line, n.Members[0].Value.Text)
	// Output: a 2 1
}

func ExampleParseError() {
	_, err := strictjson.Parse([]byte("[1,\n2"))
	var bad *strictjson.ParseError
	fmt.Println(errors.As(err, &bad), bad.Line)
	// Output: true 2
}

func ExampleProblem() {
	n, _ := strictjson.Parse([]byte(`{"weight": true, "limits": [{"cpus": 1}]}`))
	var pool struct {
		Weight int `json:"weight"`
		Limits []struct {
			CPU int `json:"cpu"`
		} `json:"limits"`
	}
	var d strictjson.Decoder
	for _, p := range d.Decode(&n, &pool) {
		fmt.Printf("%+v\n", p)
	}
	// Output:
	// {Path:weight Line:1 Detail:want an integer, got a boolean true Unknown:}
	// {Path:limits[0].cpus Line:1 Detail:unknown field "cpus": did you mean "cpu"? Unknown:limits.cpus}
}
