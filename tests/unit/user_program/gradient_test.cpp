// What backward follows: from the loss of a step to that of its forward, also over ranks.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace gradient_test {

namespace {

// SGD changes a parameter by lr times its gradient, so one step tells a gradient by its lr.
Ran train(const std::string& step, const std::string& more = "", double lr = 0.125) {
  return run_text(
      "version: 1\nseed_everything: 3\n"
      "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
      "optimizer: {SGD: {lr: " +
          std::to_string(lr) +
          "}}\n"
          "data: {train: {samples: 8, batch_size: 2}}\n"
          "verify: {numerics: true}\n" +
          more + "program:\n  training_step: [forward" + step + "]\n",
      standard_strategies());
}

std::string on_cpus(int devices, const std::string& strategy, const std::string& more = "") {
  return "trainer: {accelerator: cpu, devices: " + std::to_string(devices) +
         ", strategy: " + strategy + ", max_epochs: 1, enable_checkpointing: false" + more + "}\n";
}

const std::string two = on_cpus(2, "ddp");
const std::string two_gpus =
    "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, max_steps: 1, "
    "enable_checkpointing: false}\ncluster: {preset: dgx-a100, nodes: 1}\n";

std::string end_of(const Ran& ran) { return ran.result.ends[0].message; }

std::vector<double> parameters(const Ran& ran) {
  std::vector<double> all;
  for (const Values& values : ran.log(0).final_parameters) {
    for (int64_t i = 0; i < values.size(); ++i) {
      all.push_back(values.number(i));
    }
  }
  return all;
}

bool equal(const Ran& a, const Ran& b) {
  const std::vector<double> x = parameters(a);
  const std::vector<double> y = parameters(b);
  REQUIRE(x.size() == 10);
  REQUIRE(y.size() == x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i] - y[i]) > 1e-5 * std::max(1.0, std::abs(y[i]))) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a multiple of the loss moves the parameters as that multiple of the rate does") {
  const Ran doubled = train(", let: {loss: 2 * loss}", two);
  CHECK(end_of(doubled) == "");
  CHECK(equal(doubled, train("", two, 0.25)));
  CHECK_FALSE(equal(doubled, train("", two)));
}

TEST_CASE("a copy and a reduction in place leave the graph as it was") {
  // Seen in PyTorch 2.11: all_reduce changes the value, and the gradient flows as through nothing.
  CHECK(equal(train(", copy: {tensor: loss, to: cpu}", two), train("", two)));
  CHECK(equal(train(", all_reduce: loss", two), train("", two)));
}

TEST_CASE("under dp the copies' own losses are followed too") {
  const std::string dp = "versions: {lightning: \"1.6\"}\n" +
                         std::string(
                             "trainer: {accelerator: gpu, devices: 2, strategy: dp, "
                             "max_epochs: 1, enable_checkpointing: false}\n"
                             "cluster: {preset: dgx-a100, nodes: 1}\n");
  CHECK(equal(train(", let: {loss: 2 * loss}", dp), train("", dp, 0.25)));
}

TEST_CASE("the mean of gathered losses with gradients trains as DDP alone does") {
  const std::string mean =
      ", all_gather: {tensor: loss, sync_grads: true, as: losses}, let: {loss: mean(losses)}";
  for (const std::string version : {"2.6", "1.6"}) {
    const std::string more = "versions: {lightning: \"" + version + "\"}\n" + two;
    const Ran gathered = train(mean, more);
    CHECK(end_of(gathered) == "");
    CHECK(equal(gathered, train("", more)));
  }
}

TEST_CASE("the backward of all_gather is what framework and version have") {
  const std::string mean =
      ", all_gather: {tensor: loss, sync_grads: true, as: losses}, let: {loss: mean(losses)}";
  const auto more = [&](OpKind kind, const std::string& trainer) {
    return count(train(mean, trainer).result, 0, kind) - count(train("", trainer).result, 0, kind);
  };
  CHECK(more(OpKind::scatter, two) == 2 * 2);  // one from each rank in each of two batches
  CHECK(more(OpKind::reduce_scatter, two_gpus) == 1);
  const std::string old = "versions: {lightning: \"1.6\"}\n" + two;
  CHECK(more(OpKind::all_reduce, old) == 2);
  CHECK(more(OpKind::scatter, old) == 0);
}

TEST_CASE("what a rank made of another's loss reaches that one") {
  // Each rank trains on the other's loss alone: DDP's mean is then half of the two, as ever.
  const Ran swapped = train(
      ", all_gather: {tensor: loss, sync_grads: true, as: losses}, let: {loss: \"losses[1 - "
      "rank]\"}",
      two);
  CHECK(equal(swapped, train("", two)));
}

TEST_CASE("a loss without a graph raises what PyTorch raises") {
  const std::string no_graph =
      "element 0 of tensors does not require grad and does not have a grad_fn";
  CHECK(end_of(train(", all_gather: {tensor: loss, as: losses}, let: {loss: mean(losses)}", two)) ==
        no_graph);
  CHECK(end_of(train(", let: {loss: float(mean(score))}", two)) == no_graph);
}

TEST_CASE("a backward begins at one number") {
  // PyTorch's words; a vector of losses has no gradient of its own.
  const std::string scalar = "grad can be implicitly created only for scalar outputs";
  CHECK(end_of(train(", all_gather: {tensor: loss, sync_grads: true, as: loss}", two)) == scalar);
  CHECK(end_of(train(", let: {loss: \"concat([loss, loss])\"}", two)) == scalar);
  CHECK(end_of(train(", let: {loss: \"concat([loss])\"}", two)) == "");
}

TEST_CASE("a sum over batches has a graph that is gone") {
  const std::string sum = ", let: {self.sum: self.sum + loss}, let: {loss: self.sum}";
  Ran ran = run_text(
      "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n" + two +
          "data: {train: {samples: 8, batch_size: 2}}\nprogram:\n"
          "  on_fit_start: [{let: {self.sum: 0.0}}]\n  training_step: [forward" +
          sum + "]\n",
      standard_strategies());
  CHECK(end_of(ran) == "Trying to backward through the graph a second time");
  CHECK(ran.log(0).steps == 1);
}

TEST_CASE("without a process group all_gather gives its data as they are") {
  // Seen in Lightning 2.6.6: a tensor of 3 stays one, under ddp of one process it becomes [1, 3].
  const std::string gather =
      ", let: {x: \"full(3, 1.0)\"}, all_gather: {tensor: x, as: y}, assert: len(y) == ";
  CHECK(end_of(train(gather + "3", on_cpus(1, "auto"))) == "");
  CHECK(train(gather + "3", on_cpus(1, "auto")).log(0).findings.empty());
  CHECK(train(gather + "1", on_cpus(1, "ddp")).log(0).findings.empty());
  const Ran own =
      train(", all_gather: {tensor: loss, as: y}, let: {loss: 2 * y}", on_cpus(1, "auto"));
  CHECK(equal(own, train("", on_cpus(1, "auto"), 0.25)));
}

}  // namespace gradient_test
