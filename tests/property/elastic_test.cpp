// Trainings that torchrun starts again, over drawn sizes, optimizers and failures, against the same
// training without a failure.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "io/scenario/load/load.hpp"
#include "rehearsal/elastic/attempts.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace elastic_test {

namespace {

constexpr const char* elastic_name = "a resumed training ends where one without a failure ends";

/// A training, and when a rank of it fails.
struct ElasticCase {
  int ranks = 2;
  int batches = 2;  ///< per epoch
  int epochs = 3;
  int batch_size = 2;
  int accumulated = 1;
  int rank = 0;
  int step = 1;
  bool raises = false;
  int save_every = 0;  ///< optimizer steps; 0: at the end of epochs
  std::string optimizer;
  bool schedules = false;
  bool has_batch_norm = false;

  int steps_of_epoch() const { return (batches + accumulated - 1) / accumulated; }
  int steps() const { return steps_of_epoch() * epochs; }
};

std::ostream& operator<<(std::ostream& out, const ElasticCase& drawn) {
  return out << fmt::format(
             "{} ranks, {} batches of {}, {} epochs, accumulated {}, rank {} {} in step {}, save "
             "every {}, {}, schedules {}, batch norm {}\n",
             drawn.ranks, drawn.batches, drawn.batch_size, drawn.epochs, drawn.accumulated,
             drawn.rank, drawn.raises ? "raises" : "is lost", drawn.step, drawn.save_every,
             drawn.optimizer, drawn.schedules, drawn.has_batch_norm);
}

template <class T>
T of_full_size(rc::Gen<T> generator) {
  return *rc::gen::resize(rc::kNominalSize, std::move(generator));
}

int between(int least, int most) { return of_full_size(rc::gen::inRange(least, most + 1)); }

ElasticCase draw_elastic() {
  ElasticCase drawn;
  drawn.ranks = between(1, 3);
  drawn.batches = between(1, 4);
  drawn.epochs = between(2, 4);
  drawn.batch_size = between(1, 3);
  drawn.accumulated = between(1, 2);
  drawn.rank = between(0, drawn.ranks - 1);
  drawn.step = between(0, drawn.steps() - 1);
  drawn.raises = between(0, 1) == 1;
  drawn.save_every = between(0, 2) == 2 ? between(1, 2) : 0;
  drawn.optimizer = of_full_size(
      rc::gen::element<std::string>("{SGD: {lr: 0.1}}", "{SGD: {lr: 0.1, momentum: 0.9}}",
                                    "{Adam: {lr: 0.01}}", "{AdamW: {lr: 0.01}}"));
  drawn.schedules = between(0, 1) == 1;
  drawn.has_batch_norm = between(0, 2) == 0;
  return drawn;
}

std::string text_of(const ElasticCase& drawn, bool fails) {
  std::string text = fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "launcher: {{torchrun: {{nproc_per_node: {}, max_restarts: 1}}}}\n"
      "model: {{input: [3], layers: [{{Linear: [3, 4]}}{}, ReLU, {{Linear: [4, 2]}}]}}\n"
      "optimizer: {}\n{}"
      "data: {{batch_size: {}, train: {{samples: {}}}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, strategy: ddp, max_epochs: {}, "
      "accumulate_grad_batches: {}, limit_val_batches: 0, callbacks: [{{ModelCheckpoint: "
      "{{dirpath: saved, save_last: true{}}}}}]}}\n"
      "program: {{main: [{{fit: {{ckpt_path: last}}}}]}}\n"
      "verify: {{single_device: false, numerics: true}}\n",
      drawn.ranks, drawn.has_batch_norm && drawn.batch_size > 1 ? ", {BatchNorm1d: 4}" : "",
      drawn.optimizer,
      drawn.schedules ? "lr_scheduler: {StepLR: {step_size: 1, gamma: 0.5}}\n" : "",
      drawn.batch_size, drawn.batch_size * drawn.batches * drawn.ranks, drawn.ranks, drawn.epochs,
      drawn.accumulated,
      drawn.save_every > 0 ? fmt::format(", every_n_train_steps: {}", drawn.save_every) : "");
  if (fails) {
    text += fmt::format("faults: [{{{}: {{rank: {}, at: step {}}}}}]\n",
                        drawn.raises ? "exception" : "lost_rank", drawn.rank, drawn.step);
  }
  return text;
}

Scenario scenario_of_case(const ElasticCase& drawn, bool fails) {
  const std::string text = text_of(drawn, fails);
  const FileReader reader =
      [&text](const std::string&, size_t) -> std::variant<std::string, FileError> { return text; };
  LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  if (!loaded.ok()) {
    throw std::invalid_argument(loaded.diagnostics.front().message + "\n" + text);
  }
  return std::move(loaded.scenarios.front());
}

cli::Attempts attempts_of(const ElasticCase& drawn, bool fails) {
  const Scenario scenario = scenario_of_case(drawn, fails);
  const cli::RunAttempt run = [](const Scenario& own, const Attempt& attempt) {
    cli::RunRequest request;
    request.attempt = attempt;
    cli::Explored explored;
    explored.first = cli::run_once(own, request);
    explored.undecided = explored.first.undecided;
    return explored;
  };
  return cli::run_attempts(scenario, run,
                           [] { return std::make_shared<cli::MemoryCheckpoints>(); });
}

bool ends_alike(const cli::Attempts& left, const cli::Attempts& right) {
  const auto values = [](const cli::Attempts& attempts) {
    std::vector<Values> all;
    for (const NamedValues& one : cli::parameters_of(attempts.last.first)) {
      all.push_back(one.values);
    }
    return all;
  };
  return values(left) == values(right);
}

}  // namespace

TEST_CASE("a resumed training ends where one without a failure ends") {
  const char* const name = "a resumed training ends where one without a failure ends";
  Distribution distribution;
  const bool held = holds(name, 200, [&] {
    const ElasticCase drawn = draw_elastic();
    RC_LOG() << drawn;
    distribution.draw();
    distribution.count_case();
    const cli::Attempts whole = attempts_of(drawn, false);
    const cli::Attempts failed = attempts_of(drawn, true);
    RC_ASSERT(whole.results.restarts() == 0);
    RC_ASSERT(failed.results.restarts() == 1);
    const RankLog& log = failed.last.first.preparation.log->ranks.front();
    RC_ASSERT(log.steps == drawn.steps());
    RC_ASSERT(log.epochs == drawn.epochs);
    RC_ASSERT(!cli::parameters_of(whole.last.first).empty());
    const auto& resumption = log.resumption;
    RC_ASSERT(resumption.has_value());
    const cli::AttemptResult& second = failed.results.attempts.back();
    // The newest checkpoint whose save came before the step of the failure.
    const int every = drawn.save_every > 0 ? drawn.save_every : drawn.steps_of_epoch();
    RC_ASSERT(second.first_step == drawn.step / every * every);
    const bool within = second.first_step % drawn.steps_of_epoch() != 0;
    distribution.count(second.first_step == 0 ? "before the first checkpoint"
                       : within               ? "resumed within an epoch"
                                              : "resumed at the start of an epoch");
    if (!within) {
      RC_ASSERT(ends_alike(whole, failed));
    }
    const bool ends_epoch = within && !failed.results.resumed_epochs.empty();
    if (ends_epoch) {  // what is left of the loader's order begins with what was used
      const int64_t left = drawn.batches - resumption->batch;
      const int64_t again = std::min<int64_t>(resumption->batch, left);
      const int64_t samples = again * drawn.batch_size * drawn.ranks;
      RC_ASSERT(failed.results.resumed_epochs.back().repeated == samples);
      RC_ASSERT(failed.results.resumed_epochs.back().missed == samples);
    }
  });
  distribution.print(elastic_name);
  REQUIRE(held);
  CHECK(distribution.share("resumed at the start of an epoch") >= 0.2);
  CHECK(distribution.share("resumed within an epoch") >= 0.03);
}

}  // namespace elastic_test
