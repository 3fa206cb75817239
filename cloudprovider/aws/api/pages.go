package api

import "context"

// paginator is a paginator of the SDK, with answers O and options of a service.
type paginator[O, Options any] interface {
	HasMorePages() bool
	NextPage(ctx context.Context, options ...func(*Options)) (O, error)
}

// All reads all pages and returns what of extracts from each, in order. The error is that of the
// first call that fails.
func All[O, Options, T any](ctx context.Context, pages paginator[O, Options], of func(O) []T) ([]T, error) {
	var all []T
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, of(page)...)
	}
	return all, nil
}
