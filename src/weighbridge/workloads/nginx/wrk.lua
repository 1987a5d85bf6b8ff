-- wrk reads this script for each of its threads and once more for itself; only the last one's done() is called.
-- It prints one line of JSON: wrk's own lines give its percentiles only rounded. Times are in microseconds.

local threads = 0

function setup(thread)
  threads = threads + 1
end

-- How many ports a client may connect from; each connection needs one.
local function ports()
  local file = io.open("/proc/sys/net/ipv4/ip_local_port_range")
  if not file then return -1 end
  local first, last = file:read("*number", "*number")
  file:close()
  return first and last and last - first + 1 or -1
end

-- Whether every file that this process may open is open. wrk counts a socket that it cannot open as an error of
-- connecting. Its connections are still open now; what its threads waited with (one file each) is closed again.
local function out_of_files()
  local opened, full = {}, false
  for number = 1, threads + 1 do
    local file, _, code = io.open("/dev/null")
    if not file then full = code == 24 or code == 23 end  -- EMFILE, ENFILE
    opened[number] = file
  end
  for _, file in pairs(opened) do file:close() end  -- some may be nil
  return full
end

function done(summary, latency)
  local full = out_of_files()  -- before ports() opens another file
  local errors = summary.errors
  local whole = {
    {"requests", summary.requests}, {"duration_us", summary.duration}, {"bytes", summary.bytes},
    {"connect", errors.connect}, {"read", errors.read}, {"write", errors.write},
    {"status", errors.status}, {"timeout", errors.timeout}, {"ports", ports()}, {"out_of_files", full and 1 or 0},
  }
  local line = {}
  for _, pair in ipairs(whole) do
    line[#line + 1] = string.format('"%s":%.0f', pair[1], pair[2])
  end
  line[#line + 1] = string.format('"mean_us":%.3f', latency.mean)
  for _, share in ipairs({50, 95, 99}) do
    line[#line + 1] = string.format('"p%d_us":%.0f', share, latency:percentile(share))
  end
  print("{" .. table.concat(line, ",") .. "}")
end
