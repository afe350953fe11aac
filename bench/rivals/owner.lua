-- Envoy's Lua filter doing what Belay's path key does: key out of the path, owner out of a table.
-- KEYS and OWNERS are set in front of this text.
local owner_of = {}
for i = 0, KEYS - 1 do owner_of[string.format("key-%012d", i)] = OWNERS[i % #OWNERS + 1] end

function envoy_on_request(handle)
  local path = handle:headers():get(":path")
  local key, rest = string.match(path, "^/s/([^/?]+)(.*)$")
  if key == nil then
    handle:respond({ [":status"] = "404" }, "no key")
    return
  end
  local owner = owner_of[key]
  if owner == nil then
    handle:respond({ [":status"] = "503" }, "no owner")
    return
  end
  handle:headers():replace(":path", rest == "" and "/" or rest)
  handle:setUpstreamOverrideHost(owner, true)
end
