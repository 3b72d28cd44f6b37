#include "io/report/rank_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "io/report/report_envelope.hpp"
#include "io/report/report_fields.hpp"
#include "io/report/row_checks.hpp"

namespace lockstep {

namespace {

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
          {"peak_by_purpose", binary_of(std::span<const Bytes>(memory.peak_by_purpose))},
          {"peak_buffer", memory.peak_buffer.value}};
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
  return {enumerator_of(json.at("kind"), RankEnd::Kind::failed), site_of(json.at("site")),
          json.at("message"), json.at("out_of_memory")};
}

MemoryByPurpose purposes_of(const Json& json) {
  const auto values = values_of_binary<Bytes>(json);
  MemoryByPurpose purposes{};
  if (values.size() != purposes.size()) {
    throw ReportError("the report has unknown purposes of memory: run the ranks again");
  }
  std::copy(values.begin(), values.end(), purposes.begin());
  return purposes;
}

// The capacity of a device without a limit is the largest number.
DeviceMemory memory_of(const Json& json) {
  const auto bytes = [&json](const char* key) { return Bytes(whole_of<int64_t>(json.at(key), 0)); };
  return {bytes("capacity"),
          bytes("held"),
          bytes("peak"),
          purposes_of(json.at("held_by_purpose")),
          purposes_of(json.at("peak_by_purpose")),
          json.contains("peak_buffer") ? BufferId{whole_of<uint32_t>(json.at("peak_buffer"))}
                                       : no_buffer};
}

/// Row::lists of the journal, by those of the report.
std::vector<uint32_t> add_lists(const Json& lists, LaneJournal& lane) {
  check_list(lists);
  std::vector<uint32_t> kept = {0};
  for (const Json& each : lists) {
    const auto after = values_of_binary<Ticket>(each.at("after"));
    const auto reads = values_of_binary<Slice>(each.at("reads"));
    const auto writes = values_of_binary<Slice>(each.at("writes"));
    const auto splits = values_of_binary<int64_t>(each.at("splits"));
    std::ranges::for_each(reads, check_slice);
    std::ranges::for_each(writes, check_slice);
    kept.push_back(lane.append_lists({after, reads, writes, splits, {}}));
  }
  return kept;
}

void add_lane(const Json& json, int32_t ranks, LaneJournal& lane) {
  const std::vector<uint32_t> kept_lists = add_lists(json.at("lists"), lane);
  const auto completions = values_of_binary<Completion>(json.at("completions"));
  size_t next = 0;
  for (Row row : values_of_binary<Row>(json.at("rows"))) {
    check_row(row, ranks, lane.size());
    if (row.lists >= kept_lists.size()) {
      throw ReportError("the lists of an operation are missing in the report: run the ranks again");
    }
    row.lists = kept_lists[row.lists];
    lane.append(row);
    if (has_ticket(row)) {
      if (next == completions.size()) {
        throw ReportError(
            "the outcome of an operation is missing in the report: run the ranks again");
      }
      check_completion(completions[next], ranks);
      lane.complete(row.sequence, completions[next++]);
    }
  }
}

void add_journal(const Json& json, int32_t rank, Journal& journal) {
  const Json& lanes = list_at(json, "lanes");
  if (lanes.size() > std::numeric_limits<uint16_t>::max()) {
    throw ReportError("the report has too many lanes: run the ranks again");
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    add_lane(lanes[lane], journal.ranks(), journal.lane(rank, LaneId{static_cast<uint16_t>(lane)}));
  }
  auto& groups = journal.groups[static_cast<size_t>(rank)];
  for (const Json& group : list_at(json, "groups")) {
    const auto members = values_of_binary<int32_t>(group.at("members"));
    check_members(members, journal.ranks());
    groups.push_back({whole_of<uint64_t>(group.at("communicator")), members});
  }
}

void add_waiting(const Json& json, int32_t rank, RunResult& result) {
  for (const Json& lane : list_at(json, "waiting")) {
    result.waiting.push_back({rank, LaneId{whole_of<uint16_t>(lane.at("lane"))},
                              enumerator_of(lane.at("until"), Until::any),
                              values_of_binary<Ticket>(lane.at("tickets"))});
    if (result.journal != nullptr &&
        result.waiting.back().lane.value >= result.journal->lanes(rank)) {
      throw ReportError("an unknown lane of the report waits: run the ranks again");
    }
  }
}

void add(const Json& json, int32_t rank, RunResult& result, RankLog& log) {
  if (json.at("format") != report_format) {
    throw ReportError("this is not a report of a rank");
  }
  if (json.at("rank") != rank || json.at("world_size") != result.ends.size()) {
    throw ReportError("the report is of a different rank or run");
  }
  const auto index = static_cast<size_t>(rank);
  result.hung = result.hung || json.at("hung").get<bool>();
  result.total_time = std::max(result.total_time, Time(count_of(json.at("total_time_ps"))));
  result.operations += count_of(json.at("operations"));
  result.ends[index] = end_of_json(json.at("end"));
  for (const Json& struck : list_at(json, "struck_faults")) {
    result.struck_faults.emplace(whole_of<int32_t>(struck.at(0)), whole_of<int32_t>(struck.at(1)));
  }
  for (const Json& memory : list_at(json, "memory")) {
    result.memory[index][DeviceId{whole_of<uint8_t>(memory.at("device"))}] = memory_of(memory);
  }
  if (const Json& tensors = json.at("tensor_peak"); !tensors.is_null()) {
    result.tensor_peak.resize(result.ends.size());
    result.tensor_peak[index] = Bytes(count_of(tensors));
  }
  if (json.contains("journal") && result.journal != nullptr) {
    add_journal(json.at("journal"), rank, *result.journal);
  }
  add_waiting(json, rank, result);
  log = log_of_json(json.at("log"));
}

}  // namespace

std::vector<uint8_t> encode_rank_report(const RunResult& result, const RankLog& log, int32_t rank,
                                        const RankOrigin& origin) {
  const auto index = static_cast<size_t>(rank);
  Json json = {{"format", report_format},
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
  return sealed_report(Json::to_cbor(json));
}

RankOrigin add_rank_report(std::span<const uint8_t> report, int32_t rank, RunResult& result,
                           RankLog& log) {
  const std::vector<uint8_t> content = content_of_report(report);
  check_cbor(content);
  try {
    const Json json = Json::from_cbor(content.begin(), content.end());
    add(json, rank, result, log);
    return {json.at("libraries"),
            json.at("device"),
            json.at("host"),
            whole_of<int64_t>(json.at("clock_at_start_ns")),
            {whole_of<uint64_t>(json.at("run")), whole_of<uint64_t>(json.at("scenario"))}};
  } catch (const Json::exception&) {
    throw ReportError("its content is not that of a report: run the ranks again");
  }
}

}  // namespace lockstep
