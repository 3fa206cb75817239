package binpack_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The result has the same bytes on every machine only if no product is fused with a sum, which rounds once instead of twice on
// arm64, ppc64le, riscv64 and s390x. The compiler's listing for arm64 shows no fused product.
func TestNoProductIsFusedWithASum(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for arm64")
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=github.com/joinery-sdk/joinery/binpack/...=-S", "./...")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	listing, err := cmd.CombinedOutput()
	require.NoError(t, err, "%.2000s", listing)
	require.Contains(t, string(listing), "FMULD", "a listing of products")
	fused := regexp.MustCompile(`(?m)^.*\(\S*/binpack/\S+\.go:\d+\).*\bFN?M(ADD|SUB)[DS]\b.*$`)
	require.Empty(t, fused.FindAllString(string(listing), 10))
}
