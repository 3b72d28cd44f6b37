#include "tests/unit/oracle/sharded_comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "model/strategy/local_model/replica_sites.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

using nlohmann::json;

std::vector<json> sharded_recordings(const std::string& family) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = LOCKSTEP_SOURCE_DIR "/tests/data/oracle/sharded";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<json> all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    all.push_back(json::parse(file));
  }
  std::erase_if(all, [&](const json& each) { return !each["setting"].contains(family); });
  REQUIRE_FALSE(all.empty());
  return all;
}

namespace {

// As the recordings name the file.
constexpr std::string_view checkpoint_path = "model.ckpt";
constexpr int64_t pickle_of_text = 15;

Program train(Rank& rank, Strategy& strategy, const json& setting, OurRank& ours) {
  co_await strategy.setup(rank, Stage::fit);
  for (const json& iteration : setting["iterations"][static_cast<size_t>(rank.id())]) {
    const Batch batch{iteration["samples"].get<std::vector<int64_t>>()};
    StepOptions options;
    options.training = iteration.value("training", true);
    options.synchronise = iteration.value("synchronise", true);
    options.loss_factor = iteration.value("loss_factor", 1.0);
    options.skipped_layers = iteration.value("skipped_layers", std::vector<size_t>{});
    co_await strategy.forward(rank, batch, options);
    co_await rank.settle(strategy.loss_ready());
    ours.losses.push_back(rank.read(strategy.loss()).number(0));
    if (!options.training) {
      continue;
    }
    co_await strategy.backward(rank, options);
    if (iteration.value("step", true)) {
      UpdateOptions update;
      if (setting.contains("clip_norm") && !setting["clip_norm"].is_null()) {
        update.clipping = {GradientClipping::Algorithm::norm, setting["clip_norm"]};
      }
      co_await strategy.optimizer_step(rank, update);
      // FairScale's buckets need gradients that stay.
      co_await strategy.zero_gradients(rank, 0, !setting.contains("fairscale"));
    }
  }
  if (setting.contains("checkpoint")) {
    CheckpointRequest request;
    request.path = Bytes(static_cast<int64_t>(checkpoint_path.size()) + pickle_of_text);
    const WrittenBytes written = co_await strategy.save_checkpoint(rank, request, {});
    ours.written = written.own;
    co_await strategy.barrier(rank, {});
  }
  const Ticket all = rank.event();
  co_await rank.settle(all);
  ours.held = strategy.held_parameters();
  for (const HeldParameter& held : ours.held) {
    ours.values.push_back(rank.read(held.value));
  }
}

}  // namespace

OurRun our_sharded_run(const json& setting, const SettingNetworks& networks) {
  const TrainingPlan plan = sharded_plan(setting, networks);
  RunOptions options;
  options.world_size = setting["world_size"];
  options.ranks_per_node =
      options.world_size / setting.value("fsdp1", json::object()).value("nodes", 1);
  options.numerics = true;
  options.network = plan.network;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  OurRun run;
  run.ranks.resize(static_cast<size_t>(options.world_size));
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    strategies.push_back(sharded_strategy(setting, plan));
  }
  run.result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train(rank, *strategies[index], setting, run.ranks[index]);
  });
  return run;
}

namespace {

std::vector<int32_t> members_of(const RunResult& result, int32_t rank, GroupId group) {
  const auto& known = result.journal->groups[static_cast<size_t>(rank)];
  const size_t index = group.value;
  if (index != 0 && index < known.size()) {
    return known[index].members.ranks();
  }
  std::vector<int32_t> world(static_cast<size_t>(result.journal->ranks()));
  std::iota(world.begin(), world.end(), 0);
  return world;
}

/// The calls of a rank and the layers between them: "all_gather fp32 18", "forward 2", "step".
std::vector<std::string> ours_in_order(const RunResult& result, int32_t rank,
                                       const SettingNetworks& networks) {
  std::vector<std::string> order;
  const auto add_layer = [&](std::string_view pass, int32_t layer) {
    if (const auto whole = networks.layer_of_whole(static_cast<size_t>(layer))) {
      order.push_back(fmt::format("{} {}", pass, *whole));
    }
  };
  result.journal->lane(rank, 0).for_each([&](const Row& row) {
    if (row.row != RowKind::op) {
      return;
    }
    if (row.kind == OpKind::barrier) {
      order.push_back("barrier");
    } else if (is_communication(row.kind) && row.kind != OpKind::new_group) {
      order.push_back(fmt::format("{} {} {}", name_of(row.kind), name_of(row.dtype),
                                  row.bytes / size_of(row.dtype)));
      if (networks.cut || is_point_to_point(row.kind)) {
        order.back() += fmt::format(" of {}", fmt::join(members_of(result, rank, row.group), " "));
      }
    } else if (row.site == site_id(replica_sites::layer_forward) ||
               row.site == site_id(replica_sites::recompute)) {
      add_layer("forward", row.tag);
    } else if (row.site == site_id(replica_sites::layer_backward)) {
      add_layer("backward", row.tag);
    }
  });
  return order;
}

// A layer of several Linears has a mark of its own, which stands before what its last one
// exchanges.
json with_exchanged_outputs_first(const json& setting, json operations) {
  const json& layers = setting["network"]["layers"];
  for (size_t i = 0; i + 1 < operations.size(); ++i) {
    const bool is_backward = operations[i].value("pass", "") == "backward";
    const std::string kind =
        is_backward ? layers[operations[i]["layer"].get<size_t>()]["kind"] : "";
    if ((kind == "GroupedQueryAttention" || kind == "SwiGLU") &&
        operations[i + 1].value("kind", "") == "all_gather") {
      std::swap(operations[i], operations[i + 1]);
      ++i;
    }
  }
  return operations;
}

std::vector<std::string> theirs_in_order(const json& setting, const json& recorded) {
  std::vector<std::string> order;
  const json operations =
      with_exchanged_outputs_first(setting, with_second_forwards_first(setting, recorded));
  for (const json& each : operations) {
    if (each.value("kind", "") == "barrier") {
      order.push_back("barrier");
    } else if (each.contains("kind") && each["kind"] != "new_group") {
      const bool is_scatter = each["kind"] == "scatter";  // where the others put nothing in
      order.push_back(fmt::format("{} {} {}", each["kind"].get<std::string>(),
                                  each["dtype"].get<std::string>(),
                                  each[is_scatter ? "output" : "elements"].get<int64_t>()));
      const bool has_peer = each["kind"] == "send" || each["kind"] == "recv";
      if (setting.contains("tensor") || has_peer) {
        order.back() +=
            fmt::format(" of {}", fmt::join(each["group"].get<std::vector<int32_t>>(), " "));
      }
    } else if (each.contains("layer")) {
      order.push_back(
          fmt::format("{} {}", each["pass"].get<std::string>(), each["layer"].get<int64_t>()));
    }
  }
  return order;
}

bool is_layer(const std::string& each) {
  return each.starts_with("forward ") || each.starts_with("backward ");
}

double greatest_of(const std::vector<double>& numbers) {
  double greatest = 0;
  for (const double number : numbers) {
    greatest = std::max(greatest, std::abs(number));
  }
  return greatest;
}

bool is_narrow(const json& setting) {
  const json pipeline = setting.value("pipeline", json::object());
  if (pipeline.value("fully_shard", json::object()).contains("mixed_precision")) {
    return true;
  }
  for (const char* family : {"fsdp1", "fsdp2"}) {
    if (setting.contains(family) && setting[family].value("mixed_precision", json()).is_object()) {
      return true;
    }
  }
  const json fairscale = setting.value("fairscale", json::object());
  return (setting.contains("deepspeed") && setting["deepspeed"].contains("bf16")) ||
         fairscale.contains("reduce_fp16") || fairscale.contains("oss");
}

// Sums of a few dozen terms in two orders, or one step of the last place of a 16-bit result.
double allowed(const json& setting, double greatest) {
  return (is_narrow(setting) ? 2 * 0x1p-8 : 64 * 0x1p-24) * greatest;
}

void check_near(const std::vector<double>& ours, const std::vector<double>& theirs,
                const json& setting) {
  REQUIRE(ours.size() == theirs.size());
  const double bound = allowed(setting, greatest_of(theirs));
  for (size_t i = 0; i < ours.size(); ++i) {
    INFO("element " << i << ", allowed " << bound);
    CHECK(std::abs(ours[i] - theirs[i]) <= bound);
  }
}

std::vector<double> assembled(const OurRun& run, const Network& network, size_t parameter) {
  const ParameterPlace place = network.parameters()[parameter];
  std::vector<double> whole(static_cast<size_t>(network.parameter(place).elements()), NAN);
  // The recording is rank 0's, should ranks differ.
  for (auto rank = run.ranks.rbegin(); rank != run.ranks.rend(); ++rank) {
    for (size_t i = 0; i < rank->held.size(); ++i) {
      for (int64_t element = 0;
           rank->held[i].parameter == parameter && element < rank->values[i].size(); ++element) {
        whole.at(static_cast<size_t>(rank->held[i].first_element + element)) =
            rank->values[i].number(element);
      }
    }
  }
  return whole;
}

std::string word_of(RankEnd::Kind kind) {
  switch (kind) {
    case RankEnd::Kind::finished: return "finished";
    case RankEnd::Kind::raised: return "raised";
    case RankEnd::Kind::stuck: return "stuck";
    default: return "failed";
  }
}

constexpr std::string_view pickled = " uint8 ";

// Of objects that torch pickles the size is an approximation (docs/oracle.md): within a fifth.
void check_calls_and_sizes(const std::vector<std::string>& ours,
                           const std::vector<std::string>& theirs) {
  INFO("ours: " << fmt::format("{}", fmt::join(ours, "; "))
                << "\ntheirs: " << fmt::format("{}", fmt::join(theirs, "; ")));
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t at = theirs[i].find(pickled);
    if (ours[i] == theirs[i] || at == std::string::npos) {
      CHECK(ours[i] == theirs[i]);
      continue;
    }
    const size_t size = at + pickled.size();
    REQUIRE(ours[i].substr(0, size) == theirs[i].substr(0, size));
    const double our_size = std::stod(ours[i].substr(size));
    const double their_size = std::stod(theirs[i].substr(size));
    INFO(ours[i] << " for " << theirs[i]);
    CHECK(std::abs(our_size - their_size) <= 0.2 * their_size);
  }
}

// The gradients of weights that a schedule computes apart have no mark in a recording.
void forget_backwards(const json& setting, std::vector<std::string>& order) {
  const json pipeline = setting.value("pipeline", json::object());
  if (pipeline.value("schedule", "").ends_with("ZeroBubble")) {
    std::erase_if(order, [](const std::string& each) { return each.starts_with("backward "); });
  }
}

}  // namespace

void check_calls_of(const json& recorded) {
  const json& setting = recorded["setting"];
  const SettingNetworks networks = sharded_networks(setting);
  const OurRun ours = our_sharded_run(setting, networks);
  for (size_t rank = 0; rank < ours.ranks.size(); ++rank) {
    INFO("rank " << rank << " " << ours.result.ends[rank].message);
    std::vector<std::string> own = ours_in_order(ours.result, static_cast<int32_t>(rank), networks);
    const json& their_rank = recorded["ranks"][rank];
    CHECK(word_of(ours.result.ends[rank].kind) == their_rank["ended"].get<std::string>());
    std::vector<std::string> theirs = theirs_in_order(setting, their_rank["operations"]);
    if (their_rank["ended"] == "raised" && is_layer(theirs.back()) && own.back() != theirs.back()) {
      theirs.pop_back();  // the mark of the layer that raises
    }
    forget_backwards(setting, own);
    forget_backwards(setting, theirs);
    check_calls_and_sizes(own, theirs);
  }
}

void check_values_of(const json& recorded) {
  const json& setting = recorded["setting"];
  const SettingNetworks networks = sharded_networks(setting);
  const Network& network = *networks.whole;
  const OurRun ours = our_sharded_run(setting, networks);
  for (size_t rank = 0; rank < ours.ranks.size(); ++rank) {
    INFO("rank " << rank << " " << ours.result.ends[rank].message);
    CHECK(ours.result.ends[rank].kind == RankEnd::Kind::finished);
    check_near(ours.ranks[rank].losses, recorded["ranks"][rank]["losses"], setting);
  }
  for (size_t parameter = 0; parameter < network.parameters().size(); ++parameter) {
    const std::string name = network.parameter_name(network.parameters()[parameter]);
    const auto holder = std::ranges::find_if(
        recorded["ranks"], [&](const json& rank) { return rank["parameters"].contains(name); });
    REQUIRE(holder != recorded["ranks"].end());
    const json& theirs = (*holder)["parameters"].at(name);
    INFO(name);
    if (theirs.is_array()) {
      check_near(assembled(ours, network, parameter), theirs, setting);
    }
  }
}

}  // namespace lockstep::test
