package api

import (
	"context"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// plainBody hides from the HTTP client that a request's body can write itself. The SDK closes a
// body as soon as the answer has begun. A closed body that is asked to write itself returns io.EOF
// as if that were a failure. The HTTP client looks for more of a body after all of it was sent, and
// takes that failure for a broken connection. So an answer that comes quickly would be cut off with
// "use of closed network connection".
var plainBody = middleware.BuildMiddlewareFunc("joinery.PlainBody", func(
	ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
) (middleware.BuildOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if s, ok := r.GetStream().(io.ReadSeeker); ok { // it is in memory
			plain, err := r.SetStream(struct{ io.ReadSeeker }{s})
			if err != nil {
				return middleware.BuildOutput{}, middleware.Metadata{}, err
			}
			in.Request = plain
		}
	}
	return next.HandleBuild(ctx, in)
})
