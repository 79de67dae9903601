// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updateplan maintains the status of UpdatePlans. It analyzes the update of each plan,
// follows the cluster for an hour, and then makes no more requests for the plan until another
// analysis is requested.
//
//	created, refreshed, or the cluster has another release
//	        |
//	    analysis: facts, built-in checks, and one request to each update informer
//	        |  each has answered                          Complete
//	    followed for an hour: facts and acceptances       Startable or not
//	        |
//	    dormant: a change of the spec is reflected; nothing else is done
//	        |  installed, not offered, not requested
//	    pruned: an Event keeps the acceptances
//
// Only package pkg/updateplan interprets a status. If a crash interrupts an analysis, it is
// repeated, because the plan is not complete.
package updateplan
