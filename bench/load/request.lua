-- Load for wrk. Arguments after `--`: kind, keys, seed, Host header, then what the kind needs.
--   path      GET /s/<random key>/x
--   header    the same, and the key in x-player-id
--   session   the same, and x-session: one of the tokens that follow, by key
--   envelope  POST of 200 bytes with the key in a protobuf envelope
--   fill      GET of every key once, in order, then ends wrk, which prints nothing then
local format, random = string.format, math.random
local kind, keys, tokens, at = "path", 1, {}, 0

local head
local post = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n"
-- 12: { 1: "belay1", 2: 1, 5: key }, then 1: payload
local envelope = post .. "\98\28\10\6belay1\16\1\42\16key-%012d\10\167\1" .. string.rep("p", 167)
-- Beyond the last key, so that no request of the last keys is cut.
local FILL_SPARE = 2000

local make = {
  path = function(key) return format(head .. "\r\n", key) end,
  header = function(key) return format(head .. "x-player-id: key-%012d\r\n\r\n", key, key) end,
  session = function(key) return format(head .. "x-session: %s\r\n\r\n", key, tokens[key % #tokens + 1]) end,
  envelope = function(key) return format(envelope, key) end,
}

function init(args)
  kind, keys = args[1], tonumber(args[2])
  math.randomseed(tonumber(args[3]))
  head = "GET /s/key-%012d/x HTTP/1.1\r\nHost: " .. args[4] .. "\r\n"
  for i = 5, #args do tokens[#tokens + 1] = args[i] end
end

function request()
  if kind ~= "fill" then return make[kind](random(0, keys - 1)) end
  local key = at
  at = at + 1
  if at > keys + FILL_SPARE then os.exit(0) end
  return make.path(key % keys)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(format("result requests=%d duration_us=%d p50_us=%d p99_us=%d bad=%d cut=%d\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
