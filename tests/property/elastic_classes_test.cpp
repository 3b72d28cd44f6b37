// An elastic job in which some ranks run for others has the same attempts as one in which each
// runs.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "rehearsal/elastic/attempts.hpp"
#include "rehearsal/elastic/kept_checkpoints.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/draws.hpp"
#include "tests/property/held.hpp"
#include "tests/property/scenario_of.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace elastic_classes_test {

namespace {

int between(int least, int most) { return least + drawn_below(most - least + 1); }

std::string drawn_failure(int nodes, int devices, int steps) {
  const int step = between(1, steps);
  const int rank = between(0, nodes * devices - 1);
  switch (between(0, 2)) {
    case 0: return fmt::format("{{lost_rank: {{rank: {}, at: step {}}}}}", rank, step);
    case 1: return fmt::format("{{exception: {{rank: {}, at: step {}}}}}", rank, step);
    default:
      return fmt::format("{{lost_node: {{node: {}, at: step {}}}}}", between(0, nodes - 1), step);
  }
}

struct ElasticJobCase {
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const ElasticJobCase& job) { return out << job.text; }

ElasticJobCase draw_job() {
  const int nodes = between(5, 12);
  const int devices = *rc::gen::element(1, 2, 2);
  const int batches = between(4, 9);
  const int epochs = between(1, 3);
  const bool may_shrink = *rc::gen::element(true, false);
  const int spare = *rc::gen::element(0, 1);
  std::string faults = drawn_failure(nodes, devices, batches * epochs);
  if (*rc::gen::element(true, false)) {
    faults += ", " + drawn_failure(nodes, devices, batches * epochs);
  }
  return {fmt::format(
      "version: 1\n"
      "cluster: {{preset: dgx-a100, nodes: {}, start_time: 20 s}}\n"
      "launcher: {{torchrun: {{nnodes: {}, nproc_per_node: {}, max_restarts: {}}}}}\n"
      "model: {{input: [6], layers: [{{Linear: [6, 64]}}, ReLU, {{Linear: [64, 3]}}], loss: "
      "MSELoss}}\n"
      "data: {{train: {{samples: {}, batch_size: 2, shuffle: {}}}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, num_nodes: {}, strategy: {}, max_epochs: {}, "
      "num_sanity_val_steps: 0, callbacks: [{{ModelCheckpoint: {{dirpath: runs, save_last: "
      "true{}}}}}]}}\n"
      "program: {{main: [{{fit: {{ckpt_path: last}}}}]}}\n"
      "faults: [{}]\n",
      nodes + spare, may_shrink ? fmt::format("\"2:{}\"", nodes) : fmt::to_string(nodes), devices,
      between(1, 3), batches * 2 * nodes * devices + between(-1, 1),
      *rc::gen::element("true", "false"), devices,
      may_shrink ? std::string("GROUP_WORLD_SIZE") : fmt::to_string(nodes),
      *rc::gen::element("ddp", "ddp", "fsdp"), epochs,
      *rc::gen::element("", ", every_n_train_steps: 3", ", every_n_train_steps: 2"), faults)};
}

cli::Attempts attempts_of(const std::string& text, bool all_ranks) {
  const cli::RunAttempt run = [](const Scenario& scenario, const Attempt& attempt) {
    cli::RunRequest request;
    request.attempt = attempt;
    cli::Explored explored;
    explored.first = cli::run_once(scenario, request);
    return explored;
  };
  const std::string whole =
      text + fmt::format("verify: {{numerics: false, all_ranks: {}}}\n", all_ranks);
  return cli::run_attempts(scenario_of(whole), run,
                           [] { return std::make_shared<cli::MemoryCheckpoints>(); });
}

std::string text_of(const cli::AttemptResult& attempt) {
  return fmt::format(
      "{} ranks on {} nodes, began {} ran {} steps {} to {} kept {} useful {} from `{}`, batch {}, "
      "lr {}, down {}: {}",
      attempt.ranks, attempt.nodes.size(), attempt.began.count(), attempt.ran.count(),
      attempt.first_step, attempt.last_step, attempt.kept_step, attempt.useful.count(),
      attempt.resumed_from, attempt.effective_batch_size.value_or(0), attempt.learning_rate,
      attempt.down.whole().count(), attempt.failure);
}

std::string text_of(const cli::ElasticResults& results) {
  std::string text = results.ended_by + "\n";
  for (const cli::AttemptResult& attempt : results.attempts) {
    text += text_of(attempt) + "\n";
  }
  for (const cli::ResumedEpoch& epoch : results.resumed_epochs) {
    text += fmt::format("epoch {}: {} samples, {} repeated, {} missed\n", epoch.epoch,
                        epoch.samples, epoch.repeated, epoch.missed);
  }
  return text;
}

constexpr const char* name = "an elastic job in which ranks run for others has the same attempts";

}  // namespace

TEST_CASE("an elastic job in which ranks run for others has the same attempts") {
  Distribution distribution;
  const bool held = holds(name, 60, [&] {
    const ElasticJobCase job = *rc::gen::exec([] { return draw_job(); });
    const cli::Attempts folded = attempts_of(job.text, false);
    const cli::Attempts of_all = attempts_of(job.text, true);
    RC_ASSERT(folded.last.first.ran == of_all.last.first.ran);
    distribution.draw();
    distribution.count_case();
    distribution.count(folded.last.first.preparation.options.classes ? "some run for others"
                                                                     : "each runs");
    if (of_all.results.attempts.size() > 1) {
      distribution.count("several attempts");
    }
    if (!of_all.results.resumed_epochs.empty()) {
      distribution.count("resumed within an epoch");
    }
    if (text_of(folded.results) != text_of(of_all.results)) {
      RC_FAIL(fmt::format("{}\nwith every rank:\n{}", text_of(folded.results),
                          text_of(of_all.results)));
    }
  });
  distribution.print(name);
  REQUIRE(held);
  CHECK(distribution.share("some run for others") >= 0.2);
  CHECK(distribution.share("several attempts") >= 0.3);
  CHECK(distribution.share("resumed within an epoch") >= 0.05);
}

}  // namespace elastic_classes_test
