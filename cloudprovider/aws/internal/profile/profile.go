// Package profile manages the instance profiles through which machines get a role: one for each
// node class that names a role.
package profile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joinery-sdk/joinery/cloudprovider"
	"github.com/joinery-sdk/joinery/cloudprovider/aws/api"
)

// Path returns the path of the cluster's profiles, so that a policy can be limited to them.
func Path(region, cluster string) string { return "/joinery/" + region + "/" + cluster + "/" }

// Name returns the name of the profile of a role in a cluster and region.
func Name(region, cluster, role string) string {
	sum := sha256.Sum256([]byte(region + "\x00" + cluster + "\x00" + role))
	return cluster + "_" + hex.EncodeToString(sum[:8])
}

// find returns the roles of a profile, and whether there is one.
func find(ctx context.Context, clients *api.Clients, name string) (roles []string, found bool, err error) {
	out, err := clients.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if _, missing := errors.AsType[*types.NoSuchEntityException](err); missing {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, r := range out.InstanceProfile.Roles {
		roles = append(roles, aws.ToString(r.RoleName))
	}
	return roles, true, nil
}

// Ensure finds or makes the profile of a role. It returns its name and whether it was made.
// Repeating it has no further effect.
func Ensure(ctx context.Context, clients *api.Clients, cluster, role string) (name string, made bool, err error) {
	name = Name(clients.Region, cluster, role)
	roles, found, err := find(ctx, clients, name)
	if err == nil && !found {
		_, err = clients.IAM.CreateInstanceProfile(ctx, create(clients.Region, cluster, name))
		made = true // possibly, if there is an error
		if _, exists := errors.AsType[*types.EntityAlreadyExistsException](err); exists {
			made = false
			roles, _, err = find(ctx, clients, name)
		}
	}
	if err != nil {
		return name, made, err
	}
	base := bare(role)
	for _, r := range roles {
		if r == base {
			return name, made, nil
		}
		if err := removeRole(ctx, clients, name, r); err != nil {
			return name, made, err
		}
	}
	_, err = clients.IAM.AddRoleToInstanceProfile(ctx, addRole(name, base))
	if _, missing := errors.AsType[*types.NoSuchEntityException](err); missing {
		err = &cloudprovider.Error{Code: cloudprovider.ErrNotReady, Err: fmt.Errorf("the role %q of the node class does not exist", role)}
	}
	return name, made, err
}

// create returns the request for a profile.
func create(region, cluster, name string) *iam.CreateInstanceProfileInput {
	return &iam.CreateInstanceProfileInput{
		InstanceProfileName: aws.String(name), Path: aws.String(Path(region, cluster)),
		Tags: []types.Tag{{Key: aws.String("kubernetes.io/cluster/" + cluster), Value: aws.String("owned")}},
	}
}

func addRole(name, role string) *iam.AddRoleToInstanceProfileInput {
	return &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(role)}
}

func removeRole(ctx context.Context, clients *api.Clients, name, role string) error {
	_, err := clients.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
		InstanceProfileName: aws.String(name), RoleName: aws.String(role),
	})
	return err
}

// bare returns a role without its path, as a profile needs it.
func bare(role string) string { return role[strings.LastIndex(role, "/")+1:] }

// Missing returns the requests that [Ensure] would send to make the profile of a role, or nil, nil
// if it exists. It changes nothing.
func Missing(ctx context.Context, clients *api.Clients, cluster, role string) (*iam.CreateInstanceProfileInput, *iam.AddRoleToInstanceProfileInput, error) {
	name := Name(clients.Region, cluster, role)
	if _, found, err := find(ctx, clients, name); found || err != nil {
		return nil, nil, err
	}
	return create(clients.Region, cluster, name), addRole(name, bare(role)), nil
}

// Delete deletes a profile with its contents. A profile that does not exist counts as deleted.
func Delete(ctx context.Context, clients *api.Clients, name string) error {
	roles, found, err := find(ctx, clients, name)
	if err != nil || !found {
		return err
	}
	var missing *types.NoSuchEntityException
	for _, r := range roles {
		if err := removeRole(ctx, clients, name, r); err != nil && !errors.As(err, &missing) {
			return err
		}
	}
	if _, err = clients.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: aws.String(name)}); errors.As(err, &missing) {
		return nil
	}
	return err
}

// Collect deletes the cluster's profiles that are older than age and for which keep returns false,
// and returns their names. The roles of running instances cannot be renewed once their profile is
// gone, so keep the profiles of running instances.
func Collect(ctx context.Context, clients *api.Clients, cluster string, keep func(name string) bool, age time.Duration) ([]string, error) {
	var deleted []string
	all, err := api.All(ctx, iam.NewListInstanceProfilesPaginator(clients.IAM, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(Path(clients.Region, cluster))}),
		func(o *iam.ListInstanceProfilesOutput) []types.InstanceProfile { return o.InstanceProfiles })
	for _, p := range all {
		name := aws.ToString(p.InstanceProfileName)
		if keep(name) || time.Since(aws.ToTime(p.CreateDate)) < age {
			continue
		}
		if err := Delete(ctx, clients, name); err != nil {
			return deleted, err
		}
		deleted = append(deleted, name)
	}
	return deleted, err
}
