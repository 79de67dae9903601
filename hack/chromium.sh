#!/usr/bin/env bash
# Copyright The Managed Upgrade Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints the path of Chromium, which can be set in CHROMIUM, or explains how to install it.
set -euo pipefail

for program in ${CHROMIUM:-chromium chromium-browser chromium-headless-shell google-chrome chrome}; do
  command -v "$program" && exit
done
echo "no Chromium: install it (Debian and Ubuntu: apt-get install chromium; Fedora: dnf install chromium; macOS: brew install --cask chromium)," \
  "or name its program by CHROMIUM=/path/to/chrome" >&2
exit 1
