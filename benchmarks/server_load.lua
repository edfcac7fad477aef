-- wrk: the lines of the file TEXTS, one after the other, as requests; and the figures as one line of JSON
local bodies, at = {}, 0
for line in io.lines(os.getenv("TEXTS")) do bodies[#bodies + 1] = line end

request = function()
  at = at % #bodies + 1
  return wrk.format("POST", "/predict", { ["Content-Type"] = "application/json" }, bodies[at])
end

done = function(summary, latency)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format('FIGURES {"requests": %d, "failed": %d, "seconds": %f, "p99": %f}\n',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(99) / 1e6))
end
