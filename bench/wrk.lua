-- Reads:   wrk … -s bench/wrk.lua URL -- KEY FILE           FILE holds a path per line; they are asked for in turn
-- Creates: wrk … -s bench/wrk.lua URL -- KEY FILE PREFIX    each POST to the first path makes PREFIX1@…, PREFIX2@…
-- In the end it prints one line of JSON.

local requests, path, prefix = {}, nil, nil
local turn = 0

function init(args)
  wrk.headers["x-api-key"] = args[1]
  prefix = args[3]
  for line in io.lines(args[2]) do
    path = path or line
    requests[#requests + 1] = wrk.format("GET", line)
  end
  if prefix then
    wrk.headers["content-type"] = "application/json"
    request = create
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function create()
  turn = turn + 1
  local body = string.format(
    '{"email":"%s%d@example.com","firstName":"Ayu","lastName":"Lestari","tags":["vip","bandung"]}', prefix, turn)
  return wrk.format("POST", path, nil, body)
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status, e.connect + e.read + e.write + e.timeout))
end
