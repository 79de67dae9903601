// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The scorecard program runs the tests of operator-sdk scorecard on a bundle folder. The
// operator-sdk image runs the same functions in a pod with the bundle at a fixed path.
package main

import (
	"fmt"
	"os"

	scapiv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	apimanifests "github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-sdk/internal/registry"
	"github.com/operator-framework/operator-sdk/internal/scorecard/tests"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "scorecard: name the folder of a bundle")
		os.Exit(2)
	}
	ok, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "scorecard:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(folder string) (bool, error) {
	bundle, err := apimanifests.GetBundleFromDir(folder)
	if err != nil {
		return false, err
	}
	metadata, _, err := registry.FindBundleMetadata(folder)
	if err != nil {
		return false, err
	}
	ok := true
	for _, status := range []scapiv1alpha3.TestStatus{
		tests.CheckSpecTest(bundle), tests.BundleValidationTest(folder, metadata), tests.CRDsHaveValidationTest(bundle),
		tests.CRDsHaveResourcesTest(bundle), tests.SpecDescriptorsTest(bundle), tests.StatusDescriptorsTest(bundle),
	} {
		for _, result := range status.Results {
			fmt.Println(result.Name, result.State, result.Errors)
			ok = ok && result.State == scapiv1alpha3.PassState
		}
	}
	return ok, nil
}
