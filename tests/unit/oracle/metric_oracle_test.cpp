// Our metrics against recordings of TorchMetrics 1.9.0 on one to three ranks (docs/oracle.md): the
// same values on every rank, by the same collectives in the same order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/strategy/data_parallel/ddp.hpp"
#include "model/trainer/logging/metric_exchange.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;

namespace metric_oracle_test {
using nlohmann::json;

namespace {

// Results are fp32, or sums of at most 20 fp32 terms in a different order than torch's, each
// rounded at most a few times on the way.
constexpr double relative_bound = 32 * 0x1p-24;

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/tests/data/oracle/metrics")) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

json recording(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

PlainValue plain_of(const json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return {value.get<bool>()};
  if (value.is_number_integer()) return {value.get<int64_t>()};
  if (value.is_number()) return {value.get<double>()};
  if (value.is_string()) return {value.get<std::string>()};
  PlainValue::List items;
  for (const json& item : value) {
    items.push_back(plain_of(item));
  }
  return {std::move(items)};
}

PlainValue plain_object(const std::string& class_name, const json& arguments) {
  PlainValue::Map own;
  for (const auto& [name, value] : arguments.items()) {
    own.push_back({name, plain_of(value)});
  }
  return {PlainValue::Map{{class_name, {std::move(own)}}}};
}

PlainValue members_of(const json& members) {
  if (members.is_object()) {
    PlainValue::Map map;
    for (const auto& [name, member] : members.items()) {
      map.push_back({name, plain_object(member[0], member[1])});
    }
    return {std::move(map)};
  }
  PlainValue::List list;
  for (const json& member : members) {
    list.push_back(plain_object(member[0], member[1]));
  }
  return {std::move(list)};
}

MetricDefinition definition_of(const json& setting) {
  Object object;
  object.name = setting["metric"];
  for (const auto& [name, value] : setting["arguments"].items()) {
    object.arguments.push_back({name, name == "metrics" ? members_of(value) : plain_of(value), {}});
  }
  return define_metric(setting["name"], object);
}

void add_numbers(const json& data, size_t depth, std::vector<int64_t>& shape,
                 std::vector<double>& numbers, bool& whole) {
  if (!data.is_array()) {
    numbers.push_back(data.get<double>());
    whole = whole && data.is_number_integer();
    return;
  }
  shape.resize(std::max(shape.size(), depth + 1), static_cast<int64_t>(data.size()));
  for (const json& item : data) {
    add_numbers(item, depth + 1, shape, numbers, whole);
  }
}

Tensor tensor_from(const json& data) {
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  bool whole = true;
  add_numbers(data, 0, shape, numbers, whole);
  Tensor tensor;
  tensor.shape = std::move(shape);
  tensor.values = Values::of(whole ? DType::int64 : DType::fp32, numbers);
  return tensor;
}

json written(const Tensor& tensor) {
  json values = json::array();
  for (int64_t i = 0; i < tensor.values.size(); ++i) {
    const double value = tensor.values.number(i);
    if (std::isfinite(value)) {
      values.push_back(value);
    } else {
      values.push_back(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
  }
  return {{"shape", tensor.shape}, {"values", values}};
}

json written(const Value& value) {
  if (value.is(Value::Kind::tensor)) {
    return written(value.tensor());
  }
  json items = json::array();
  for (const Value& item : value.list()) {
    items.push_back(written(item));
  }
  return items;
}

json by_key(const MetricDefinition& definition, const std::vector<Value>& values) {
  if (!definition.is_collection()) {
    return written(values.front());
  }
  json result = json::object();
  for (size_t i = 0; i < values.size(); ++i) {
    result[definition.key_of(definition.members[i])] = written(values[i]);
  }
  return result;
}

/// The inputs of one turn.
struct Inputs {
  explicit Inputs(const json& batch) {
    for (const auto& [name, data] : batch.items()) {
      tensors[name] = tensor_from(data);
    }
    const auto find = [&](const char* name) {
      const auto found = tensors.find(name);
      return found == tensors.end() ? nullptr : &found->second;
    };
    inputs.predictions = find("preds") != nullptr ? find("preds") : find("value");
    inputs.target = find("target");
    inputs.indexes = find("indexes");
    inputs.weight = find("weight");
  }
  std::map<std::string, Tensor> tensors;
  MetricInputs inputs;
};

Program run_turns(Rank& rank, Strategy& strategy, const json& turns,
                  const MetricDefinition& definition, json& record) {
  ProgramSettings settings;
  settings.gloo = true;
  RankLog log;
  Interpreter interpreter(rank, settings, log, nullptr);
  MetricExchange exchange(interpreter, strategy, rank.world_size());
  MetricInstance metric(definition);
  const StateSites sites(64, site_id("state"));
  for (const json& turn : turns) {
    const Inputs batch(turn.size() > 1 ? turn[1] : json::object());
    if (turn[0] == "update") {
      metric.update(batch.inputs);
    } else if (turn[0] == "reset") {
      metric.reset();
    } else {
      std::vector<Value> values;
      for (MetricObject& object : metric.objects()) {
        Value value;
        if (turn[0] == "compute") {
          value = co_await object.compute(&exchange, &sites);
        } else {
          value = co_await object.forward(&batch.inputs, &exchange, &sites);
        }
        values.push_back(std::move(value));
      }
      record["results"].push_back(by_key(definition, values));
    }
  }
  record["ended"] = "finished";
}

json operations_of(const Journal& journal, int32_t rank) {
  json operations = json::array();
  journal.lane(rank, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::barrier) {
      operations.push_back(json::array({"barrier"}));
    } else if (row.row == RowKind::op && is_collective(row.kind)) {
      operations.push_back({name_of(row.kind), name_of(row.dtype), row.bytes / size_of(row.dtype)});
    }
  });
  return operations;
}

json our_ranks(const json& setting) {
  const MetricDefinition definition = definition_of(setting);
  const Network no_network;
  TrainingPlan plan;
  plan.network = &no_network;
  plan.barrier_is_all_reduce = false;
  RunOptions options;
  options.world_size = setting["world_size"];
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  json ranks = json::array();
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    strategies.push_back(std::make_unique<DistributedDataParallel>(plan, DataParallelOptions()));
    ranks.push_back({{"ended", "failed"}, {"results", json::array()}});
  }
  const RunResult result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return run_turns(rank, *strategies[index], setting["turns"][index], definition, ranks[index]);
  });
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    ranks[static_cast<size_t>(rank)]["operations"] = operations_of(*result.journal, rank);
  }
  return ranks;
}

bool agree(const json& ours, const json& theirs) {
  if (ours.is_number() && theirs.is_number()) {
    const double expected = theirs.get<double>();
    return std::abs(ours.get<double>() - expected) <=
           relative_bound * std::max(std::abs(expected), 0.125);
  }
  if (ours.type() != theirs.type() || ours.size() != theirs.size() || !theirs.is_structured()) {
    return ours == theirs;
  }
  if (theirs.is_object()) {
    return std::all_of(theirs.items().begin(), theirs.items().end(), [&](const auto& item) {
      return ours.contains(item.key()) && agree(ours[item.key()], item.value());
    });
  }
  return std::equal(ours.begin(), ours.end(), theirs.begin(), agree);
}

bool all_finished(const json& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const json& rank) { return rank["ended"] == "finished"; });
}

}  // namespace

TEST_CASE("metrics give the values that TorchMetrics gives, by its collectives") {
  for (const auto& path : recordings()) {
    DYNAMIC_SECTION(path.stem().string()) {
      const json recorded = recording(path);
      const bool fails = recorded["setting"].value("fails", false);
      const json ours = our_ranks(recorded["setting"]);
      if (fails) {  // how it fails is for the diagnosis to say
        INFO("ours   " << ours << "\ntheirs " << recorded["ranks"]);
        CHECK_FALSE(all_finished(ours));
        CHECK_FALSE(all_finished(recorded["ranks"]));
        continue;
      }
      for (size_t rank = 0; rank < ours.size(); ++rank) {
        const json& theirs = recorded["ranks"][rank];
        INFO("rank " << rank << "\nours   " << ours[rank] << "\ntheirs " << theirs);
        CHECK(ours[rank]["ended"] == theirs["ended"]);
        CHECK(agree(ours[rank]["results"], theirs["results"]));
        CHECK(ours[rank]["operations"] == theirs["operations"]);
      }
    }
  }
}

TEST_CASE("the recordings cover every metric that is modelled") {
  std::set<std::string> recorded;
  for (const auto& path : recordings()) {
    recorded.insert(recording(path)["setting"]["metric"]);
  }
  for (const std::string& name : metric_class_names()) {
    INFO(name);
    CHECK(recorded.count(name) == 1);
  }
}

}  // namespace metric_oracle_test
