// Findings name the batch in which each rank makes its call, so that unequal numbers of batches are
// reported at the loader, and not at whichever call shows it first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace unequal_batches_test {

namespace {

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

// Of the first line that holds the words, from 1.
int line_with(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  REQUIRE(at != std::string::npos);
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'));
}

std::string training(const std::string& data, const std::string& trainer = "") {
  return "version: 1\ncluster: {gpus: 4}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2" +
         trainer +
         "}\n"
         "model: {input: [4], layers: [{Linear: [4, 4]}, ReLU, {Linear: [4, 2]}]}\n"
         "data:\n" +
         data +
         "program:\n  validation_step:\n"
         "    - log: {name: val_loss, value: loss, sync_dist: true, on_step: true}\n";
}

const Finding& only_error(const Rehearsal& ran) {
  const Finding* error = nullptr;
  for (const Finding& finding : ran.findings) {
    INFO(finding.title);
    if (finding.level == Level::error) {
      CHECK(error == nullptr);
      error = &finding;
    }
  }
  REQUIRE(error != nullptr);
  return *error;
}

}  // namespace

TEST_CASE("a training batch that one rank has more is reported by epoch and number") {
  // Rank 0 goes on to batch 7, with Lightning's broadcast, where rank 1 has come to validation.
  const std::string text = training(
      "  train: {batches: 8 - rank, batch_size: 4}\n"
      "  val: {samples: 16, batch_size: 4}\n");
  const Rehearsal ran = only(text);
  const Finding& finding = only_error(ran);
  CHECK(finding.code == "LS102");
  CHECK(finding.title.find("rank 0 runs a training batch that rank 1 does not have") == 0);
  CHECK(finding.why.text == "the number of training batches: 8 on rank 0, 7 on rank 1");
  const Site* const place = ran.sites.find(finding.place);
  REQUIRE(place != nullptr);
  CHECK(place->line == line_with(text, "batches: 8 - rank"));
  REQUIRE(finding.did.size() == 2);
  CHECK(finding.did[0].operation.find("in epoch 0, training batch 7") != std::string::npos);
  CHECK(finding.did[1].operation.find("in epoch 0, validation batch 0") != std::string::npos);
}

TEST_CASE("a validation batch that one rank has more is reported though the call is the same") {
  const std::string text = training(
      "  train: {samples: 64, batch_size: 4}\n"
      "  val: {batches: 2 + rank, batch_size: 4}\n");
  const Rehearsal ran = only(text);
  const Finding& finding = only_error(ran);
  CHECK(finding.title.find("rank 1 runs a validation batch that rank 0 does not have") == 0);
  CHECK(finding.did[0].operation.find("validation batch 2") != std::string::npos);
}

TEST_CASE("a guard that separates ranks in every batch does not explain one batch more") {
  const std::string text = training(
                               "  train: {batches: 8 - rank, batch_size: 4}\n"
                               "  val: {samples: 16, batch_size: 4}\n") +
                           "  on_train_batch_end:\n"
                           "    - {if: is_global_zero, then: [{log: {name: seen, value: 1}}]}\n";
  const Rehearsal ran = only(text);
  const Finding& finding = only_error(ran);
  CHECK(finding.why.text == "the number of training batches: 8 on rank 0, 7 on rank 1");
}

TEST_CASE("a rank that waits in a batch behind others that were left out is in that batch") {
  // Rank 1 waits at the end of batch 77, where its statement stands; rank 0 has gone on to
  // batch 78.
  const std::string text =
      "version: 1\ncluster: {gpus: 4}\nverify: {numerics: false}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
      "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
      "data: {train: {batches: 200, batch_size: 4}}\n"
      "program:\n  on_train_batch_end:\n"
      "    - {if: batch_idx == 77 and rank == 1, then: [barrier]}\n";
  const Rehearsal ran = only(text);
  REQUIRE(ran.results.prediction.simulated_steps < 20);
  const Finding& finding = only_error(ran);
  CHECK(finding.code == "LS101");
  REQUIRE(finding.did.size() == 2);
  CHECK(finding.did[0].operation.find("epoch 0, training batch 77") != std::string::npos);
  CHECK(finding.did[1].operation.find("epoch 0, training batch 78") != std::string::npos);
}

TEST_CASE("equal numbers of batches are no finding") {
  const std::string text = training(
      "  train: {batches: 8 + 0 * rank, batch_size: 4}\n"
      "  val: {samples: 16, batch_size: 4}\n");
  CHECK(rehearsed(text).front().result.findings.empty());
}

TEST_CASE("a guard that separates the ranks is still the cause") {
  const std::string text =
      training(
          "  train: {samples: 64, batch_size: 4}\n"
          "  val: {samples: 16, batch_size: 4}\n") +
      "  on_validation_epoch_end:\n"
      "    - {if: rank == 0, then: [{all_gather: {elements: 4, as: gathered}}]}\n";
  const Rehearsal ran = only(text);
  const Finding& finding = only_error(ran);
  CHECK(finding.why.text.find("`rank == 0`") != std::string::npos);
}

}  // namespace unequal_batches_test
