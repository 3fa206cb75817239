package api

import (
	"context"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// plainBody hides from the HTTP client that a request's body can write itself. The SDK closes a body as soon as the answer has begun, and a
// closed one that is asked to write itself says io.EOF as if that were a failure. The HTTP client looks for more of a body after all of it is sent, and
// takes that for a broken connection: an answer that comes quickly is then cut off with "use of closed network connection".
type plainBody struct{}

// ID names the step among the SDK's.
func (plainBody) ID() string { return "joinery.PlainBody" }

// HandleBuild replaces the stream of the request, which is in memory, by one that can only be read and sought.
func (plainBody) HandleBuild(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if s, ok := r.GetStream().(io.ReadSeeker); ok {
			plain, err := r.SetStream(struct{ io.ReadSeeker }{s})
			if err != nil {
				return middleware.BuildOutput{}, middleware.Metadata{}, err
			}
			in.Request = plain
		}
	}
	return next.HandleBuild(ctx, in)
}
