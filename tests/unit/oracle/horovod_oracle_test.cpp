// Our horovod against recordings of Horovod 0.28.1 (docs/oracle.md): what ranks hand over, what the
// background threads carry out and fuse, and what comes of it.
#include <catch2/catch.hpp>
#include <set>

#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/registry.hpp"
#include "sim/plain_cost.hpp"
#include "tests/unit/oracle/agreement.hpp"
#include "tests/unit/oracle/our_run.hpp"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace horovod_oracle_test {

namespace {

// 64 roundings of fp32, of which two may be to half precision.
double horovod_rounding(const json& setting) {
  const bool is_narrow = setting["horovod"].contains("compression");
  return is_narrow ? 2 * 0x1p-11 : 64 * 0x1p-24;
}

StrategyArguments horovod_arguments(const json& setting) {
  StrategyArguments arguments;
  const json given = setting.value("horovod", json::object());
  for (const auto& [name, value] : given.items()) {
    if (value.is_number_integer()) {
      arguments.set(name, value.get<int64_t>());
    } else if (value.is_number()) {
      arguments.set(name, value.get<double>());
    } else {
      arguments.set(name, value.get<std::string>());
    }
  }
  if (setting.contains("process_sets")) {
    std::vector<std::string> sets;
    for (const json& set : setting["process_sets"]) {
      sets.push_back(set.dump());
    }
    arguments.set("process_sets", sets);
  }
  const StrategyEntry entry = horovod();
  for (const StrategyVariable& variable : entry.variables) {
    if (setting["environment"].contains(variable.name)) {
      const double number = std::stod(setting["environment"][variable.name].get<std::string>());
      if (variable.unit == 0) {
        arguments.set(variable.argument, static_cast<int64_t>(number));
      } else {
        arguments.set(variable.argument, number / variable.unit);
      }
    }
  }
  return arguments;
}

/// [kind, dtype, elements] of each call that a background thread has carried out.
/// A process set has a thread of its own here.
json carried_out(const Journal& journal, int32_t rank) {
  const std::set<SiteId> sites = {
      site_id(negotiation_sites::reduce), site_id(negotiation_sites::reduce_alone),
      site_id(negotiation_sites::gather), site_id(negotiation_sites::send)};
  // Unequal parts are broadcasts here: that of rank 0's part, whose calls are recorded, is the
  // call.
  const SiteId part = site_id(negotiation_sites::gather_part);
  std::vector<std::pair<Time, json>> by_time;
  for (int32_t lane = 1; lane < journal.lanes(rank); ++lane) {
    journal.lane(rank, lane).for_each([&](const Row& row) {
      const bool is_first_part = row.site == part && row.peer == 0;
      if (row.row == RowKind::op && is_collective(row.kind) &&
          (sites.contains(row.site) || is_first_part)) {
        by_time.emplace_back(journal.lane(rank, lane).completion(row.sequence).issue,
                             json{is_first_part ? "all_gather" : name_of(row.kind),
                                  name_of(row.dtype), row.bytes / size_of(row.dtype)});
      }
    });
  }
  std::ranges::stable_sort(by_time, {}, &std::pair<Time, json>::first);
  json calls = json::array();
  for (const auto& [time, call] : by_time) {
    calls.push_back(call);
  }
  return calls;
}

/// A pickled object has names of a version, and may differ by a fifth.
bool is_same_call(const json& ours, const json& theirs) {
  if (ours[0] != theirs[0] || ours[1] != theirs[1]) {
    return false;
  }
  const double size = theirs[2];
  return theirs[1] == "uint8" ? std::abs(ours[2].get<double>() - size) <= size / 5
                              : ours[2] == theirs[2];
}

/// Only of rank 0 is it recorded what the threads did: a rank outside of its set does something
/// else.
bool does_as_rank_0(const json& setting, int32_t rank) {
  const json sets = setting.value("process_sets", json::array());
  return std::ranges::all_of(sets, [rank](const json& set) {
    const auto has = [&set](int32_t member) { return std::ranges::count(set, json(member)) != 0; };
    return has(0) == has(rank);
  });
}

void check_carried_out(const json& recorded, const Journal& journal) {
  for (int32_t rank = 0; rank < recorded["setting"]["world_size"]; ++rank) {
    if (!does_as_rank_0(recorded["setting"], rank)) {
      continue;
    }
    const json ours = carried_out(journal, rank);
    const json& theirs = recorded["carried_out"];
    INFO("rank " << rank << "\nours   " << ours << "\ntheirs " << theirs);
    CHECK(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), is_same_call));
  }
}

/// The names under which a rank has handed its gradients over, in its order.
json gradients_handed_over(const Journal& journal, const Network& network, int32_t rank) {
  std::map<SiteId, std::string> names;
  for (const ParameterPlace place : network.parameters()) {
    for (const bool in_group : {false, true}) {
      names[gradient_site(network, place, in_group)] = network.parameter_name(place);
    }
  }
  json handed_over = json::array();
  journal.lane(rank, 0).for_each([&](const Row& row) {
    const auto name = names.find(row.site);
    if (row.row == RowKind::op && name != names.end()) {
      handed_over.push_back(name->second);
    }
  });
  return handed_over;
}

/// The same of a recording, where member i of n of a group is called FIRST_iofn.
json gradients_handed_over(const json& recorded, const Network& network, size_t rank) {
  std::vector<std::string> names;
  for (const ParameterPlace place : network.parameters()) {
    if (is_trainable(network, network.layers[place.layer])) {
      names.push_back(network.parameter_name(place));
    }
  }
  json handed_over = json::array();
  for (const json& call : recorded["ranks"][rank]["handed_over"]) {
    const std::string name = call[1].is_null() ? "" : call[1].get<std::string>();
    if (call[0] != "all_reduce") {
      continue;
    }
    const size_t member = name.rfind('_');
    if (member == std::string::npos) {
      handed_over.push_back(name);
      continue;
    }
    const auto first = std::ranges::find(names, name.substr(0, member));
    REQUIRE(first != names.end());
    handed_over.push_back(*(first + std::stoll(name.substr(member + 1)) - 1));
  }
  return handed_over;
}

// Scripts: each rank's calls by themselves

struct ScriptNames {
  std::map<std::string, int64_t> numbers;
  int64_t of(const std::string& name) {
    return numbers.emplace(name, std::ssize(numbers)).first->second;
  }
};

struct InScript {
  Slice data;
  bool gathers = false;
  int64_t handle = 0;
  std::shared_ptr<Negotiator> negotiator{};
};

/// That of all ranks, and those of the sets; null where this rank is outside.
struct ScriptNegotiators {
  std::shared_ptr<Negotiator> of_all;
  std::vector<std::shared_ptr<Negotiator>> of_sets{};
};

Program start_script(Rank& rank, const json& process_sets, ScriptNegotiators& negotiators) {
  negotiators.of_all = std::make_shared<Negotiator>(NegotiationOptions());
  co_await negotiators.of_all->start(rank);
  for (const json& set : process_sets) {
    NegotiationOptions options;
    options.process_set = set.get<std::vector<int64_t>>();
    const auto negotiator = std::make_shared<Negotiator>(options);
    co_await negotiator->make_groups(rank);
    const bool is_member = std::ranges::count(options.process_set, int64_t{rank.id()}) != 0;
    negotiators.of_sets.push_back(is_member ? negotiator : nullptr);
    if (is_member) {
      co_await negotiator->start(rank);
    }
  }
}

InScript hand_over_statement(Rank& rank, const ScriptNegotiators& negotiators, ScriptNames& names,
                             const json& statement) {
  const std::string kind = statement[0];
  TensorRequest request;
  request.name = {kind == "all_reduce"  ? RequestKind::all_reduce
                  : kind == "broadcast" ? RequestKind::broadcast
                                        : RequestKind::all_gather,
                  NameSpace::parameter, names.of(statement[1])};
  request.dtype = *dtype_named(statement[2].get<std::string>());
  request.elements = statement[3];
  request.reduction = statement[4] == "average"   ? Reduction::avg
                      : statement[4] == "min"     ? Reduction::min
                      : statement[4] == "max"     ? Reduction::max
                      : statement[4] == "product" ? Reduction::product
                                                  : Reduction::sum;
  request.root = kind == "broadcast" ? statement[4].get<int32_t>() : 0;
  InScript made;
  made.negotiator =
      statement.size() > 5 ? negotiators.of_sets[statement[5].get<size_t>()] : negotiators.of_all;
  made.data = rank.allocate(Purpose::communication, request.dtype, request.elements);
  Values values(request.dtype, request.elements);
  for (int64_t i = 0; i < request.elements; ++i) {
    values.set(i, static_cast<double>(i + 10 * rank.id()));
  }
  rank.write(made.data, values);
  made.gathers = request.name.kind == RequestKind::all_gather;
  made.handle =
      made.negotiator->submit(rank, request, made.data, {}, rank.event({compute_stream, {}, {}}));
  return made;
}

Program wait_in_script(Rank& rank, InScript made, json& results) {
  Slice whole;
  try {
    whole = co_await made.negotiator->wait(rank, made.handle, {});
  } catch (const ProgramException&) {
    results.push_back("raised");
    co_return;
  }
  const Values values = rank.read(made.gathers ? whole : made.data);
  json numbers = json::array();
  for (int64_t i = 0; i < values.size(); ++i) {
    numbers.push_back(values.number(i));
  }
  results.push_back(numbers);
}

Program follow_script(Rank& rank, const json& setting, ScriptNames& names, json& results) {
  const json statements = setting["script"][static_cast<size_t>(rank.id())];
  const json process_sets = setting.value("process_sets", json::array());
  ScriptNegotiators negotiators;
  co_await start_script(rank, process_sets, negotiators);
  const std::shared_ptr<Negotiator> negotiator = negotiators.of_all;
  std::vector<InScript> waiting;
  for (const json& statement : statements) {
    if (statement[0] == "join") {
      TensorRequest join;
      join.name = {RequestKind::join, NameSpace::unnamed, 0};
      const int64_t handle =
          negotiator->submit_unnamed(rank, join, {}, {}, rank.event({compute_stream, {}, {}}));
      co_await negotiator->wait(rank, handle, {});
      results.push_back("joined");
    } else if (statement[0] == "wait") {
      for (const InScript& made : std::exchange(waiting, {})) {
        co_await wait_in_script(rank, made, results);
      }
    } else {
      waiting.push_back(hand_over_statement(rank, negotiators, names, statement));
    }
  }
  for (const std::shared_ptr<Negotiator>& of_set : negotiators.of_sets) {
    if (of_set) {
      co_await of_set->stop(rank);
    }
  }
  co_await negotiator->stop(rank);
}

json result_in_our_words(const json& theirs) {
  return theirs.is_array() ? theirs : theirs.contains("raised") ? json("raised") : json("joined");
}

void check_script(const json& recorded) {
  const json& setting = recorded["setting"];
  RunOptions options;
  options.world_size = setting["world_size"];
  options.ranks_per_node = options.world_size;
  options.numerics = true;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  ScriptNames names;
  std::vector<json> results(static_cast<size_t>(options.world_size), json::array());
  const RunResult result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return follow_script(rank, setting, names, results[index]);
  });
  for (size_t rank = 0; rank < results.size(); ++rank) {
    json theirs = json::array();
    for (const json& each : recorded["ranks"][rank]["results"]) {
      theirs.push_back(result_in_our_words(each));
    }
    INFO("rank " << rank << "\nours   " << results[rank] << "\ntheirs " << theirs);
    CHECK(results[rank] == theirs);
  }
  check_carried_out(recorded, *result.journal);
}

void check_values(const json& ours, const json& theirs, double tolerance) {
  const auto alone = [](const json& state) { return json::array({state}); };
  check_agree("losses", ours["losses"], as_single_precision(theirs["losses"]), tolerance);
  check_agree("gradients", ours["gradients"], theirs["gradients"], tolerance);
  if (theirs["ended"] != "stuck") {
    check_agree("parameters", alone(ours["parameters"]), alone(theirs["parameters"]), tolerance);
    check_agree("buffers", alone(ours["buffers"]), alone(theirs["buffers"]), tolerance);
  }
}

void check_training(const json& recorded) {
  const json& setting = recorded["setting"];
  const StrategyRun ours = our_run(setting, [&setting](const TrainingPlan& plan) {
    return horovod().make(plan, horovod_arguments(setting));
  });
  const Network network = network_of_setting(setting);
  for (size_t rank = 0; rank < ours.ranks.size(); ++rank) {
    INFO("rank " << rank);
    const json& theirs = recorded["ranks"][rank];
    const bool is_stuck_in_join = ours.ranks[rank]["ended"] == "finished" &&
                                  ours.result.ends[rank].kind != RankEnd::Kind::finished;
    CHECK((is_stuck_in_join ? json("stuck") : ours.ranks[rank]["ended"]) == theirs["ended"]);
    CHECK(gradients_handed_over(*ours.result.journal, network, static_cast<int32_t>(rank)) ==
          gradients_handed_over(recorded, network, rank));
    check_values(ours.ranks[rank], theirs, horovod_rounding(setting));
  }
  check_carried_out(recorded, *ours.result.journal);
}

}  // namespace

TEST_CASE("horovod does what Horovod did") {
  for (const auto& path : recordings_in("horovod")) {
    DYNAMIC_SECTION(path.stem().string()) {
      const json recorded = recording_at(path);
      if (recorded["setting"].contains("script")) {
        check_script(recorded);
      } else {
        check_training(recorded);
      }
    }
  }
  CHECK(recordings_in("horovod").size() == 49);
}

}  // namespace horovod_oracle_test
