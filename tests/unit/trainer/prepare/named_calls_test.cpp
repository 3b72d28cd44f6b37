// What is refused of calls by name, and of losses that compare samples.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace named_calls_test {

namespace {

using Kind = Problem::Kind;

bool has_problem(const std::string& text, Kind kind, const std::string& words) {
  const Preparation preparation = prepare(scenario_of(text), standard_strategies());
  for (const Problem& problem : preparation.problems) {
    UNSCOPED_INFO(problem.message);
    if (problem.kind == kind && problem.message.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

std::string of_two_ranks(const std::string& backend, const std::string& statement) {
  return "version: 1\ncluster: {ranks: 2, network: {bandwidth: 25 GB/s}}\nprocess_group: "
         "{backend: " +
         backend + "}\nprogram: {main: [{let: {x: \"full(2, 1.0)\"}}, " + statement + "]}\n";
}

std::string contrastive(const std::string& versions, const std::string& strategy,
                        const std::string& more) {
  return "version: 1\nversions: {lightning: \"" + versions +
         "\"}\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {input: [2, 4], layers: [{Linear: "
         "[4, 2]}], " +
         more + "}\ntrainer: {accelerator: gpu, devices: 2, strategy: " + strategy +
         ", max_epochs: 1}\n";
}

const std::string gathers = "loss: {NTXentLoss: {gather_distributed: true}}";
const std::string at_end = "loss: NTXentLoss, loss_in: training_step_end";

}  // namespace

TEST_CASE("over Horovod a program has Horovod's calls alone") {
  const auto over = [](const std::string& statement) { return of_two_ranks("horovod", statement); };
  CHECK(has_problem(over("{send: {tensor: x, dst: 1}}"), Kind::invalid, "Horovod has no send"));
  CHECK(has_problem(over("{new_group: {ranks: [0, 1], as: g}}"), Kind::invalid,
                    "Horovod has no new_group"));
  CHECK(has_problem(over("{all_to_all: {tensor: x}}"), Kind::unsupported, "all_to_all"));
  CHECK(has_problem(over("{all_reduce: {tensor: x, stream: side}}"), Kind::invalid,
                    "chooses the stream"));
  CHECK(has_problem(over("{barrier: {async: true, as: y}}"), Kind::invalid, "no handle"));
  const std::string whole = over("{all_reduce: {tensor: x, name: \"a.{rank}\"}}, barrier, join");
  CHECK(prepare(scenario_of(whole), standard_strategies()).problems.empty());
}

TEST_CASE("names and join are Horovod's, and Horovod is no backend of a Trainer") {
  CHECK(has_problem(of_two_ranks("nccl", "{all_reduce: {tensor: x, name: a}}"), Kind::invalid,
                    "only Horovod pairs calls by `name`"));
  CHECK(has_problem(of_two_ranks("gloo", "join"), Kind::invalid, "`join` is Horovod's"));
  CHECK(
      has_problem("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nprocess_group: {backend: "
                  "horovod}\ntrainer: {accelerator: gpu, devices: 2, strategy: ddp}\n",
                  Kind::invalid, "no backend of a process group"));
  CHECK_THROWS_WITH(scenario_of(of_two_ranks("horovod", "{all_reduce: {tensor: x, name: \"a{\"}}")),
                    "`name` has no closing brace");
}

TEST_CASE("samples are gathered where the world divides a batch, and elsewhere not in silence") {
  CHECK_FALSE(has_problem(contrastive("2.6", "ddp", gathers), Kind::unsupported, "gather"));
  CHECK(has_problem(contrastive("1.6", "horovod", gathers), Kind::unsupported,
                    "`gather_distributed` of a loss that compares samples is not modelled"));
  CHECK(has_problem(contrastive("1.6", "dp", gathers), Kind::note, "has no effect"));
}

TEST_CASE("a loss of the whole batch needs the hook that gets all outputs") {
  CHECK_FALSE(has_problem(contrastive("1.6", "dp", at_end), Kind::note, "`loss_in`"));
  CHECK(has_problem(contrastive("1.6", "ddp", at_end), Kind::note, "`loss_in` has no effect"));
  CHECK(has_problem(contrastive("2.6", "ddp", at_end), Kind::refused, "removed in Lightning 2.0"));
}

TEST_CASE("a contrastive loss needs two views and a temperature") {
  const auto one_view =
      "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}], loss: "
      "NTXentLoss}\ntrainer: {accelerator: cpu, devices: 1}\n";
  CHECK(has_problem(one_view, Kind::invalid, "compares two views of each sample"));
  CHECK(has_problem(contrastive("2.6", "ddp", "loss: {NTXentLoss: {temperature: 0}}"),
                    Kind::invalid, "Illegal temperature"));
}

}  // namespace named_calls_test
