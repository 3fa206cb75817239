package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
)

// literal finds the composite literal that a package-level variable of a Go file is set to. The
// file's package is not compiled: importing it would drag in hundreds of others.
func literal(path, variable string) (*ast.CompositeLit, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	var found *ast.CompositeLit
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && len(spec.Names) == 1 && spec.Names[0].Name == variable && len(spec.Values) == 1 {
			found, _ = spec.Values[0].(*ast.CompositeLit)
		}
		return found == nil
	})
	if found == nil {
		return nil, fmt.Errorf("%s has no literal %s", path, variable)
	}
	return found, nil
}

// entries yields the pairs of a map or struct literal, keys as text.
func entries(lit *ast.CompositeLit) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch k := kv.Key.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(k.Value); err == nil {
				out[s] = kv.Value
			}
		case *ast.Ident:
			out[k.Name] = kv.Value
		}
	}
	return out
}

// number reads a number literal as text; "" if the expression is none.
func number(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && (lit.Kind == token.INT || lit.Kind == token.FLOAT) {
		return lit.Value
	}
	return ""
}

func integer(e ast.Expr) int64 {
	n, _ := strconv.ParseInt(number(e), 10, 64)
	return n
}

var generatedAt = regexp.MustCompile(`generated at (\d{4}-\d\d-\d\d)T\S+ for (\S+)`)

// priceLists reads on-demand prices by region, with the date that the list gives for each.
func priceLists(path, variable string) (prices map[string]map[string]string, dates map[string]string, err error) {
	lit, err := literal(path, variable)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	prices, dates = map[string]map[string]string{}, map[string]string{}
	for _, m := range generatedAt.FindAllStringSubmatch(string(text), -1) {
		dates[m[2]] = m[1]
	}
	for region, e := range entries(lit) {
		inner, ok := e.(*ast.CompositeLit)
		if !ok {
			continue
		}
		prices[region] = map[string]string{}
		for name, v := range entries(inner) {
			if f, err := strconv.ParseFloat(number(v), 64); err == nil && f > 0 {
				prices[region][name] = strconv.FormatFloat(f, 'f', -1, 64)
			}
		}
	}
	return prices, dates, nil
}
