-- wrk … -s bench/api/wrk.lua URL -- KEY FILE [HEADER: VALUE …]
-- KEY may be several with commas between them: requests with a body use them in turn.
-- FILE holds a request per line, sent in turn: a method, a path and, unless it is a GET, a body in which # stands for
-- the number of the request. In the end it prints one line of JSON.

local lines = {}
local keys = {}
local turn = 0

function init(args)
  for key in args[1]:gmatch("[^,]+") do
    keys[#keys + 1] = key
  end
  wrk.headers["x-api-key"] = keys[1]
  for place = 3, #args do
    local name, value = args[place]:match("^(%S+): (.*)$")
    wrk.headers[name] = value
  end
  for line in io.lines(args[2]) do
    local method, path, body = line:match("^(%S+) (%S+) ?(.*)$")
    if method == "GET" then
      lines[#lines + 1] = wrk.format(method, path)
    else
      wrk.headers["content-type"] = "application/json"
      lines[#lines + 1] = { method, path, body }
      request = write
    end
  end
end

function request()
  turn = turn % #lines + 1
  return lines[turn]
end

function write()
  local line = lines[turn % #lines + 1]
  wrk.headers["x-api-key"] = keys[turn % #keys + 1]
  turn = turn + 1
  return wrk.format(line[1], line[2], nil, (line[3]:gsub("#", turn)))
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status, e.connect + e.read + e.write + e.timeout))
end
