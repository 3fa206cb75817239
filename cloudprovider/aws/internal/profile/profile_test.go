package profile_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/awstest"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/internal/profile"
)

func connect(t *testing.T) (*awstest.Cloud, *api.Clients) {
	t.Helper()
	awstest.Begin()
	cloud, err := awstest.New(awstest.Config{})
	require.NoError(t, err)
	clients, err := api.Connect(t.Context(), cloud.API())
	require.NoError(t, err)
	return cloud, clients
}

func TestEnsure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		create, add, err := profile.Missing(t.Context(), clients, "harbour", "path/node")
		require.NoError(t, err)
		require.NotNil(t, create)
		assert.Equal(t, "node", *add.RoleName)
		name, made, err := profile.Ensure(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		assert.True(t, made)
		assert.Equal(t, profile.Name("us-east-1", "harbour", "node"), name)
		assert.Equal(t, []string{name}, cloud.Profiles())
		again, made, err := profile.Ensure(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		assert.False(t, made)
		assert.Equal(t, name, again)
		create, add, err = profile.Missing(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		assert.Nil(t, create)
		assert.Nil(t, add)
		require.NoError(t, profile.Delete(t.Context(), clients, name))
		require.NoError(t, profile.Delete(t.Context(), clients, name), "it is gone already")
		assert.Empty(t, cloud.Profiles())
	})
}

// A profile that was given another role gets its own back.
func TestEnsureMends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		name := profile.Name("us-east-1", "harbour", "node")
		cloud.AddProfile(name, "other")
		_, made, err := profile.Ensure(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		assert.False(t, made)
		_, _, err = profile.Ensure(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		assert.Equal(t, 1, cloud.Calls("IAM.RemoveRoleFromInstanceProfile"))
		assert.Equal(t, 1, cloud.Calls("IAM.AddRoleToInstanceProfile"))
	})
}

func TestEnsureFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		_, _, err := profile.Ensure(t.Context(), clients, "harbour", "unknown")
		require.ErrorIs(t, err, cloudprovider.ErrNotReady)
		require.ErrorContains(t, err, `"unknown"`)
		cloud.SetFault(func(c awstest.Call) awstest.Fault {
			if c.Action == "GetInstanceProfile" {
				return awstest.Fault{Code: "AccessDenied", Message: "User: me is not authorized to perform: iam:GetInstanceProfile on resource: x"}
			}
			return awstest.Fault{}
		})
		_, _, err = profile.Ensure(t.Context(), clients, "harbour", "node")
		require.ErrorIs(t, err, cloudprovider.ErrUnauthorized)
		require.ErrorContains(t, err, "allow iam:GetInstanceProfile")
	})
}

func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, clients := connect(t)
		cloud.AddRole("old")
		cloud.AddProfile("of-others", "node")
		old, _, err := profile.Ensure(t.Context(), clients, "harbour", "old")
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		kept, _, err := profile.Ensure(t.Context(), clients, "harbour", "node")
		require.NoError(t, err)
		keep := func(name string) bool { return name == kept }
		gone, err := profile.Collect(t.Context(), clients, "harbour", keep, 3*time.Hour)
		require.NoError(t, err)
		assert.Empty(t, gone, "too young")
		gone, err = profile.Collect(t.Context(), clients, "harbour", keep, time.Hour)
		require.NoError(t, err)
		assert.Equal(t, []string{old}, gone)
		assert.ElementsMatch(t, []string{kept, "of-others"}, cloud.Profiles())
	})
}

func ExampleEnsure() {
	cloud, err := awstest.New(awstest.Config{})
	if err != nil {
		panic(err)
	}
	clients, err := api.Connect(context.Background(), cloud.API())
	if err != nil {
		panic(err)
	}
	name, made, err := profile.Ensure(context.Background(), clients, "harbour", "node")
	fmt.Println(name, made, err)
	// Output: harbour_ebc9179023fccbf8 true <nil>
}
