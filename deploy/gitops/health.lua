-- Copyright The Managed Upgrade Operator Authors.
-- SPDX-License-Identifier: Apache-2.0

-- The health of all kinds of the product for Argo CD: docs/concepts/conditions.md says what the conditions mean.
local conditions = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    conditions[condition.type] = condition
  end
elseif obj.status == nil then
  return {status = "Progressing", message = "the object has not been observed yet"}
end
local ready, reconciling, stalled = conditions["Ready"], conditions["Reconciling"], conditions["Stalled"]
for _, condition in pairs({ready or {}, reconciling or {}, stalled or {}}) do
  if condition.observedGeneration ~= nil and obj.metadata.generation ~= nil and condition.observedGeneration < obj.metadata.generation then
    return {status = "Progressing", message = "the change of the object has not been observed yet"}
  end
end
if stalled ~= nil and stalled.status == "True" then
  return {status = "Degraded", message = stalled.message}
end
if reconciling ~= nil and reconciling.status == "True" then
  return {status = "Progressing", message = reconciling.message}
end
if ready ~= nil and ready.status ~= "True" then
  return {status = "Suspended", message = ready.message}
end
if ready ~= nil then
  return {status = "Healthy", message = ready.message}
end
return {status = "Healthy", message = ""}
