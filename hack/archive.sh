#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# archive.sh FOLDER
#
# Prints FOLDER as a compressed tar archive. The output depends only on names and contents, not on
# the owner, the time, or the umask.
set -euo pipefail

cd "${1:?the folder is missing}"
tar --create --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -- * | gzip --no-name
