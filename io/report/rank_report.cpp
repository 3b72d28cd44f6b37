#include "io/report/rank_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "io/report/report_fields.hpp"

namespace lockstep {

namespace {

bool has_ticket(const Row& row) { return row.row == RowKind::op || row.row == RowKind::promise; }

// Writing

Json json_of(const RankEnd& end) {
  return {{"kind", static_cast<int>(end.kind)},
          {"site", end.site.value},
          {"message", end.message},
          {"out_of_memory", end.out_of_memory}};
}

Json json_of(const WaitingLane& waiting) {
  return {{"lane", waiting.lane.value},
          {"until", static_cast<int>(waiting.until)},
          {"tickets", binary_of(std::span(waiting.tickets))}};
}

Json json_of(DeviceId device, const DeviceMemory& memory) {
  return {{"device", device.value},
          {"capacity", memory.capacity.count()},
          {"held", memory.held.count()},
          {"peak", memory.peak.count()},
          {"held_by_purpose", binary_of(std::span<const Bytes>(memory.held_by_purpose))},
          {"peak_by_purpose", binary_of(std::span<const Bytes>(memory.peak_by_purpose))}};
}

Json json_of(const RowLists& lists) {
  return {{"after", binary_of(std::span(lists.after))},
          {"reads", binary_of(std::span(lists.reads))},
          {"writes", binary_of(std::span(lists.writes))},
          {"splits", binary_of(std::span(lists.splits))}};
}

// Completions are stored by row: those of all rows that have a ticket, in the order of the rows.
Json json_of(const LaneJournal& lane) {
  std::vector<Row> rows;
  std::vector<Completion> completions;
  Json lists = Json::array();
  lane.for_each([&](const Row& row) {
    rows.push_back(row);
    if (row.lists != 0) {
      lists.push_back(json_of(lane.lists_of(row)));
      rows.back().lists = static_cast<uint32_t>(lists.size());
    }
    if (has_ticket(row)) {
      completions.push_back(lane.completion(row.sequence));
    }
  });
  return {{"rows", binary_of(std::span(std::as_const(rows)))},
          {"lists", lists},
          {"completions", binary_of(std::span(std::as_const(completions)))}};
}

Json json_of(const Membership& group) {
  return {{"communicator", group.communicator},
          {"members", binary_of(std::span(group.members.ranks()))}};
}

// Reading

RankEnd end_of_json(const Json& json) {
  return {enumerator_of(json.at("kind"), RankEnd::Kind::failed), SiteId{json.at("site")},
          json.at("message"), json.at("out_of_memory")};
}

MemoryByPurpose purposes_of(const Json& json) {
  const auto values = values_of_binary<Bytes>(json);
  MemoryByPurpose purposes{};
  if (values.size() != purposes.size()) {
    throw ReportError("the report has unknown purposes of memory");
  }
  std::copy(values.begin(), values.end(), purposes.begin());
  return purposes;
}

DeviceMemory memory_of(const Json& json) {
  const auto bytes = [&json](const char* key) { return Bytes(json.at(key).get<int64_t>()); };
  return {bytes("capacity"), bytes("held"), bytes("peak"), purposes_of(json.at("held_by_purpose")),
          purposes_of(json.at("peak_by_purpose"))};
}

// A lane numbers its tickets from 1, and each has a row.
void check(const Row& row, size_t lists, size_t rows) {
  check_kinds(row);
  if (row.lists > lists || (has_ticket(row) && row.sequence > rows)) {
    throw ReportError("the report has a row of an unknown kind");
  }
}

void add_lane(const Json& json, LaneJournal& lane) {
  const Json& lists = json.at("lists");
  std::vector<uint32_t> kept_lists = {0};  // by Row::lists of the report
  for (const Json& each : lists) {
    const auto after = values_of_binary<Ticket>(each.at("after"));
    const auto reads = values_of_binary<Slice>(each.at("reads"));
    const auto writes = values_of_binary<Slice>(each.at("writes"));
    const auto splits = values_of_binary<int64_t>(each.at("splits"));
    kept_lists.push_back(lane.append_lists({after, reads, writes, splits, {}}));
  }
  const auto completions = values_of_binary<Completion>(json.at("completions"));
  size_t next = 0;
  const auto rows = values_of_binary<Row>(json.at("rows"));
  for (Row row : rows) {
    check(row, lists.size(), rows.size());
    row.lists = kept_lists[row.lists];
    lane.append(row);
    if (has_ticket(row)) {
      if (next == completions.size() || completions[next].outcome > Outcome::aborted) {
        throw ReportError("the outcome of an operation is missing in the report");
      }
      lane.complete(row.sequence, completions[next++]);
    }
  }
}

void add_journal(const Json& json, int32_t rank, Journal& journal) {
  const Json& lanes = json.at("lanes");
  if (lanes.size() > std::numeric_limits<uint16_t>::max()) {
    throw ReportError("the report has too many lanes");
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    add_lane(lanes[lane], journal.lane(rank, LaneId{static_cast<uint16_t>(lane)}));
  }
  auto& groups = journal.groups[static_cast<size_t>(rank)];
  for (const Json& group : json.at("groups")) {
    groups.push_back({group.at("communicator"), values_of_binary<int32_t>(group.at("members"))});
  }
}

void add(const Json& json, int32_t rank, RunResult& result, RankLog& log) {
  if (json.at("format") != report_format || json.at("version") != report_version) {
    throw ReportError("this is not a report of this version of the rank program");
  }
  if (json.at("rank") != rank || json.at("world_size") != result.ends.size()) {
    throw ReportError("the report is of a different rank or run");
  }
  result.hung = result.hung || json.at("hung").get<bool>();
  result.total_time = std::max(result.total_time, Time(json.at("total_time_ps").get<int64_t>()));
  result.operations += json.at("operations").get<int64_t>();
  result.ends[static_cast<size_t>(rank)] = end_of_json(json.at("end"));
  for (const Json& lane : json.at("waiting")) {
    result.waiting.push_back({rank, LaneId{lane.at("lane")},
                              enumerator_of(lane.at("until"), Until::any),
                              values_of_binary<Ticket>(lane.at("tickets"))});
  }
  for (const Json& struck : json.at("struck_faults")) {
    result.struck_faults.emplace(struck.at(0).get<int32_t>(), struck.at(1).get<int32_t>());
  }
  for (const Json& memory : json.at("memory")) {
    result.memory[static_cast<size_t>(rank)][DeviceId{memory.at("device")}] = memory_of(memory);
  }
  if (const Json& tensors = json.at("tensor_peak"); !tensors.is_null()) {
    result.tensor_peak.resize(result.ends.size());
    result.tensor_peak[static_cast<size_t>(rank)] = Bytes(tensors.get<int64_t>());
  }
  if (json.contains("journal") && result.journal != nullptr) {
    add_journal(json.at("journal"), rank, *result.journal);
  }
  log = log_of_json(json.at("log"));
}

}  // namespace

std::vector<uint8_t> encode_rank_report(const RunResult& result, const RankLog& log, int32_t rank,
                                        const RankOrigin& origin) {
  const auto index = static_cast<size_t>(rank);
  Json json = {{"format", report_format},
               {"version", report_version},
               {"rank", rank},
               {"world_size", result.ends.size()},
               {"hung", result.hung},
               {"total_time_ps", result.total_time.count()},
               {"operations", result.operations},
               {"clock_at_start_ns", result.clock_at_start_ns},
               {"libraries", origin.libraries},
               {"device", origin.device},
               {"host", origin.host},
               {"run", origin.identity.run},
               {"scenario", origin.identity.scenario},
               {"end", json_of(result.ends[index])},
               {"waiting", Json::array()},
               {"memory", Json::array()},
               {"struck_faults", Json::array()},
               {"log", json_of_log(log)}};
  for (const WaitingLane& waiting : result.waiting) {
    if (waiting.rank == rank) {
      json["waiting"].push_back(json_of(waiting));
    }
  }
  for (const auto& [fault, on] : result.struck_faults) {
    json["struck_faults"].push_back({fault, on});
  }
  for (const auto& [device, memory] : result.memory[index]) {
    json["memory"].push_back(json_of(device, memory));
  }
  json["tensor_peak"] = nullptr;
  if (index < result.tensor_peak.size() && result.tensor_peak[index]) {
    json["tensor_peak"] = result.tensor_peak[index]->count();
  }
  if (result.journal != nullptr) {
    Json journal = {{"lanes", Json::array()}, {"groups", Json::array()}};
    for (int32_t lane = 0; lane < result.journal->lanes(rank); ++lane) {
      journal["lanes"].push_back(json_of(std::as_const(*result.journal).lane(rank, lane)));
    }
    for (const Membership& group : result.journal->groups[index]) {
      journal["groups"].push_back(json_of(group));
    }
    json["journal"] = std::move(journal);
  }
  return Json::to_cbor(json);
}

RankOrigin add_rank_report(std::span<const uint8_t> report, int32_t rank, RunResult& result,
                           RankLog& log) {
  try {
    const Json json = Json::from_cbor(report.begin(), report.end());
    add(json, rank, result, log);
    return {json.at("libraries"),
            json.at("device"),
            json.at("host"),
            json.at("clock_at_start_ns"),
            {json.at("run"), json.at("scenario")}};
  } catch (const Json::exception&) {
    throw ReportError("the report is damaged: it was cut short or changed; run the ranks again");
  }
}

}  // namespace lockstep
