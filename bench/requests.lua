-- What wrk sends, and what it says at the end. Called as
--   wrk … -s requests.lua URL -- OPERATION CLUSTERS RUN FIRST LAST
--   wrk … -s requests.lua URL -- page CLUSTERS RUN PATH TOTAL SIZE
-- One thread only: counters are global, so that observed times rise strictly over all connections.

local BASE = "/api/hyperfleet/v1/clusters"
local ADAPTERS = { "validation", "dns", "pullsecret", "hypershift" }
-- A step that visits every cluster once before any twice, far apart each time: 7919 is prime.
local STEP = 7919

local clusters, run, count, place, second, turn = 1, 0, 0, 0, 0, 0
-- The numbers of what a measurement uses up.
local supply, last = 0, 0

local function id_of(n)
    return string.format("01990000-0000-7000-8000-%012d", n)
end

local function next_cluster()
    place = (place + STEP) % clusters
    return place + 1
end

-- The next that no request has had; what is not there once all are used up, which counts as an error.
local function next_of_supply()
    supply = supply + 1
    return supply <= last + 1 and string.format("01990002-0000-7000-8000-%012d", supply - 1) or "used-up"
end

-- Clients in Go send these headers.
local HEADERS = "Host: localhost\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n"

local function message(method, path, body, headers)
    local head = method .. " " .. path .. " HTTP/1.1\r\n" .. (headers or HEADERS)
    if not body then
        return head .. "\r\n"
    end
    return head .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

local function get()
    return message("GET", BASE .. "/" .. id_of(next_cluster()))
end

local function page(number)
    local request = message("GET", BASE .. "?pageSize=20&page=" .. number)
    return function() return request end
end

-- A report of about 700 bytes. Every one is observed a microsecond after the one before, beginning
-- a second from now: later than anything an earlier run can have stored.
local function report(generation)
    return function()
        local cluster = next_cluster()
        count = count + 1
        local at = os.date("!%Y-%m-%dT%H:%M:%S", second + math.floor(count / 1000000))
        local body = '{"adapter":"' .. ADAPTERS[cluster % #ADAPTERS + 1]
            .. '","observed_generation":' .. generation
            .. ',"observed_time":"' .. at .. string.format(".%06dZ", count % 1000000)
            .. '","conditions":['
            .. '{"type":"Available","status":"True","reason":"Ready","message":"Everything asked for is there and answers"},'
            .. '{"type":"Applied","status":"True","reason":"Applied","message":"All manifests are applied"},'
            .. '{"type":"Health","status":"True","reason":"Healthy","message":"The adapter is well"}],'
            .. '"data":{"namespace":"clusters-bench","manifests":12,"console":"https://console.bench.example.com"},'
            .. '"metadata":{"attempt":1,"job_name":"adapter-job","job_namespace":"adapters","duration":"4s"}}'
        return message("PUT", BASE .. "/" .. id_of(cluster) .. "/statuses", body)
    end
end

-- The same members as the template's spec, `tag` different each time.
local function spec(tag)
    return '{"platform":{"type":"gcp","gcp":{"project":"bench-project-0001","region":"europe-west4",'
        .. '"network":"bench-network","subnet":"bench-subnet"}},"release":{"channel":"stable",'
        .. '"version":"4.20.3","image":"quay.io/bench/release:' .. tag .. '"},'
        .. '"networking":{"pod_cidr":"10.128.0.0/14","service_cidr":"172.30.0.0/16","host_prefix":23},'
        .. '"dns":{"base_domain":"bench.example.com"},"replicas":3}'
end

local function patch()
    count = count + 1
    local body = '{"spec":' .. spec(run .. "-" .. count) .. "}"
    return message("PATCH", BASE .. "/" .. id_of(next_cluster()), body)
end

local function post()
    count = count + 1
    local body = '{"kind":"Cluster","name":"post-' .. run .. "-" .. count
        .. '","labels":{"environment":"bench","owner":"team-a"},"spec":' .. spec(run) .. "}"
    return message("POST", BASE, body)
end

local function delete()
    return message("DELETE", BASE .. "/" .. next_of_supply())
end

-- The word of the last adapter on a cluster of finalizing.sql.
local function finalize()
    local condition = '{"type":"%s","status":"%s","reason":"Gone","message":"Nothing is left"},'
    local body = '{"adapter":"hypershift","observed_generation":2,"conditions":['
        .. condition:format("Available", "False") .. condition:format("Applied", "False")
        .. condition:format("Health", "True") .. condition:format("Finalized", "True"):sub(1, -2) .. "]}"
    return message("PUT", BASE .. "/" .. next_of_supply() .. "/statuses", body)
end

-- 10 reads to 5 reports.
local accepted = report(1)
local function mix()
    turn = turn + 1
    if turn % 3 == 0 then
        return accepted()
    end
    return get()
end

local operations = {
    get = get,
    first = page(1),
    page400 = page(400),
    discarded = report(2000000000),
    accepted = accepted,
    mix = mix,
    patch = patch,
    post = post,
    delete = delete,
    cascade = delete,
    finalize = finalize,
}

local operation
-- Threads are counted in by wrk; what one of them counts is asked for at the end.
local threads = {}
wrong = 0

function setup(thread)
    threads[#threads + 1] = thread
end

-- A page of a list: each answer must have that total and so many items. Both stand at its end.
local function checked_page(path, total, size)
    response = function(status, _, body)
        if status ~= 200 then
            return -- wrk counts those itself
        end
        local tail = body:sub(-200)
        if tail:match('"total":(%d+)') ~= total or tail:match('"size":(%d+)') ~= size then
            wrong = wrong + 1
        end
    end
    -- Not compressed: the response is read here.
    local request = message("GET", path, nil, "Host: localhost\r\n")
    return function() return request end
end

function init(arguments)
    if arguments[1] == "page" then
        operation = checked_page(arguments[4], arguments[5], arguments[6])
    else
        operation = operations[arguments[1]]
    end
    clusters, run = tonumber(arguments[2]), arguments[3]
    supply, last = tonumber(arguments[4]) or 0, tonumber(arguments[5]) or 0
    second = os.time() + 1
    -- Another place to begin each run.
    place = second % clusters
end

function request()
    return operation()
end

function done(summary, latency)
    local errors = summary.errors
    local wrong_answers = 0
    for _, thread in ipairs(threads) do
        wrong_answers = wrong_answers + thread:get("wrong")
    end
    io.write(string.format(
        '\nRESULT {"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"not_2xx":%d,"socket":%d,"wrong":%d}\n',
        summary.requests, summary.duration / 1e6,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        errors.status, errors.connect + errors.read + errors.write + errors.timeout, wrong_answers))
end
