#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "properties/invariants/deterministic.hpp"
#include "properties/invariants/equals_single_device.hpp"
#include "properties/invariants/every_sample_once.hpp"
#include "properties/invariants/memory_fits.hpp"
#include "properties/invariants/replicas_agree.hpp"
#include "properties/logged/rounding.hpp"
#include "properties/transfer_counts.hpp"
#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;
using test::JournalBuilder;

TEST_CASE("replicas that hold the same agree, per group") {
  std::vector<ReplicaValues> replicas;
  for (int32_t rank = 0; rank < 4; ++rank) {
    replicas.push_back(
        {rank, rank < 2 ? "a" : "b", "weight", Values::of(DType::fp32, {1, rank < 2 ? 2.0 : 3.0})});
  }
  CHECK(replicas_agree(replicas).empty());
}

TEST_CASE("one replica apart is LS305 with its element and values") {
  std::vector<ReplicaValues> replicas;
  for (int32_t rank = 0; rank < 4; ++rank) {
    replicas.push_back(
        {rank, "data parallel", "weight", Values::of(DType::fp32, {1, rank == 2 ? 2.5 : 2.0})});
    replicas.push_back(
        {rank, "data parallel", "bias", Values::of(DType::fp32, {rank == 2 ? 7.0 : 8.0})});
  }
  const auto findings = replicas_agree(replicas);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS305");
  CHECK(findings[0].ranks == RankSet({2}));
  CHECK(findings[0].title == "rank 2 does not hold the same weight as rank 0");
  CHECK(findings[0].why.text == "element 1 differs");
  REQUIRE(findings[0].why.ways.size() == 2);
  CHECK(findings[0].why.ways[1].value == "2.5");
}

TEST_CASE("the rounding bound is two gammas of the magnitude") {
  // n u = 2^-24 * 2^4 = 2^-20; gamma = 2^-20 / (1 - 2^-20).
  const double product = std::ldexp(1.0, -20);
  CHECK(rounding_bound({16}, DType::fp32, 4) == Approx(8 * product / (1 - product)).epsilon(1e-12));
  CHECK(rounding_bound({0}, DType::fp32, 4) == 0);
  CHECK(std::isinf(rounding_bound({256}, DType::bf16, 1)));
  // Mixed precision: narrow roundings of each step beside, gamma_16 of bf16 = (1/16) / (1 - 1/16).
  CHECK(rounding_bound({16, 16, 3, DType::bf16}, DType::fp32, 4) ==
        Approx(8 * (product / (1 - product) + 3.0 / 15)).epsilon(1e-12));
}

TEST_CASE("integer-valued results must equal one device bit for bit") {
  const std::vector<NamedValues> single = {{"w", 0, Values::of(DType::fp32, {1024, 2})}};
  std::vector<NamedValues> run = {{"w", 0, Values::of(DType::fp32, {1024, 2})},
                                  {"w", 1, Values::of(DType::fp32, {1024, 2})}};
  CHECK(equals_single_device(run, single, {}).empty());
  run[1].values.set(0, std::nextafterf(1024.0F, 2000.0F));
  const auto findings = equals_single_device(run, single, {});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS306");
  CHECK(findings[0].ranks == RankSet({1}));
  // One unit in the last place is 2^-13; 2 gamma_1 * 1024 is about 2^-13 too, a little more.
  CHECK(equals_single_device(run, single, {1}).empty());
  run[1].values.set(0, 1024 + std::ldexp(1.0, -11));
  CHECK(equals_single_device(run, single, {1}).size() == 1);
}

TEST_CASE("batch norm of each device's part makes a difference a warning that names it") {
  const std::vector<NamedValues> single = {{"w", 0, Values::of(DType::fp32, {1})}};
  const std::vector<NamedValues> run = {{"w", 0, Values::of(DType::fp32, {2})}};
  EqualityRule rule;
  CHECK(equals_single_device(run, single, rule).at(0).level == Level::error);
  rule.splits_statistics = true;
  const auto findings = equals_single_device(run, single, rule);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].level == Level::warning);
  CHECK(findings[0].follows.back().find("batch norm normalises each device's part") == 0);
  const auto fix_has = [](const Finding& finding, const std::string& words) {
    return std::ranges::any_of(finding.fix, [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  };
  CHECK(fix_has(findings[0], "else use sync_batchnorm"));
  rule.may_share_statistics = false;  // dp: each replica has its own chunk
  CHECK_FALSE(fix_has(equals_single_device(run, single, rule).at(0), "else use sync_batchnorm"));
  CHECK(fix_has(equals_single_device(run, single, rule).at(0), "ddp with sync_batchnorm"));
  // It joins ranks, and the micro-batches of a pipeline come one after the other on each.
  rule.micro_batches = 4;
  const auto piped = equals_single_device(run, single, rule);
  CHECK(piped.at(0).follows.back().find("batch norm normalises each micro-batch") == 0);
  CHECK_FALSE(fix_has(piped[0], "else use sync_batchnorm"));
  CHECK(fix_has(piped[0], "sync_batchnorm would not"));
  CHECK(fix_has(piped[0], "larger micro-batches, or a norm without statistics"));
}

TEST_CASE("a NaN is never equal to a number") {
  const std::vector<NamedValues> single = {{"loss", 0, Values::of(DType::fp32, {1})}};
  const std::vector<NamedValues> run = {{"loss", 0, Values::of(DType::fp32, {std::nan("")})}};
  CHECK(equals_single_device(run, single, {100}).size() == 1);
}

TEST_CASE("an infinite weight differs from a finite one, whatever its neighbours") {
  // A gradient of -200000, sent in fp16, and a learning rate of 0.5: 50,000 or infinity.
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<NamedValues> single = {{"w", 0, Values::of(DType::fp32, {50000, 0.25})}};
  const std::vector<NamedValues> run = {{"w", 0, Values::of(DType::fp32, {infinity, 0.25})}};
  EqualityRule rule{100};
  rule.narrow_operations = 2;
  rule.steps = 1;
  rule.narrow_dtype = DType::fp16;
  const auto findings = equals_single_device(run, single, rule);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fix.at(0).find("65504") != std::string::npos);
  CHECK(equals_single_device(run, run, rule).empty());
  // Near the largest number of fp32 the order of a sum decides whether it overflows.
  const std::vector<NamedValues> large = {{"w", 0, Values::of(DType::fp32, {1e37, 0.25})}};
  CHECK(equals_single_device(run, large, rule).empty());
}

TEST_CASE("numbers that overflowed in both runs are not compared with each other") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK_FALSE(beyond_rounding(infinity, std::nan(""), 1));
  CHECK(beyond_rounding(infinity, 1, 1));
  CHECK(beyond_rounding(1, std::nan(""), infinity));
  CHECK(beyond_rounding(1, 3, 1));
  CHECK_FALSE(beyond_rounding(1, 2, 1));
}

TEST_CASE("zeros of two types are equal after more operations than the type has digits for") {
  // 276 operations in bf16: n u = 276 / 256 is above 1, so gamma is infinite, and times 0 a NaN.
  const EqualityRule rule{276};
  UpdateSensitivity still;
  still.by_error = {0};
  still.largest_gradient = 1;
  still.at_most = 0.5;
  CHECK(rounding_bound(rule, DType::bf16, 0) == 0);
  CHECK(rounding_bound(rule, DType::bf16, 0, &still, 0) == 0);
  CHECK(std::isinf(rounding_bound(rule, DType::bf16, 1, &still, 0)));
  still.largest_gradient = 0;
  still.by_error = {1024};
  CHECK(rounding_bound(rule, DType::bf16, 0, &still, 0) == 0);
  CHECK_FALSE(beyond_rounding(-0.0, 0.0, 0));
  const std::vector<NamedValues> single = {{"bias", 0, Values::of(DType::bf16, {0})}};
  const std::vector<NamedValues> wide = {{"bias", 0, Values::of(DType::fp32, {0})}};
  CHECK(equals_single_device(wide, single, rule).empty());
  const std::vector<NamedValues> other = {{"bias", 0, Values::of(DType::fp32, {1})}};
  const EqualityRule short_chain{16};
  CHECK(equals_single_device(other, single, short_chain).size() == 1);
}

TEST_CASE("padding of a sampler repeats samples") {
  // 5 samples on 2 ranks: 3 each, the first is taken twice.
  const std::vector<RankSamples> padded = {{0, 0, {0, 2, 4}}, {1, 0, {1, 3, 0}}};
  CHECK(count_samples(padded, 0, 5).repeated == 1);
  CHECK(count_samples(padded, 0, 5).missed == 0);
  const auto findings = every_sample_once(padded, 5);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS304");
  CHECK(findings[0].why.text == "sample 0 is taken 2 times by ranks 0-1");
  CHECK(findings[0].level == Level::warning);  // how much it changes depends on the samples
  CHECK(findings[0].title ==
        "epoch 0: 1 of 5 samples is taken twice (padding of the sampler); none is skipped");
  CHECK(every_sample_once(std::vector<RankSamples>{{0, 0, {0, 2, 4}}, {1, 0, {1, 3}}}, 5).empty());
}

TEST_CASE("dropped samples are missed") {
  const std::vector<RankSamples> dropped = {{0, 0, {0, 1}}, {0, 1, {0}}};
  CHECK(count_samples(dropped, 1, 2).missed == 1);
  CHECK(every_sample_once(dropped, 2)[0].level == Level::error);
  REQUIRE(every_sample_once(dropped, 2).size() == 1);
  CHECK(every_sample_once(dropped, 2)[0].title == "epoch 1: 1 of 2 samples is taken by no rank");
}

TEST_CASE("few of very many samples, and indices of no sample, are counted") {
  const int64_t many = int64_t{1} << 40;
  const std::vector<RankSamples> few = {{0, 0, {0, many - 1, 7}}, {1, 0, {7, 7}}};
  CHECK(count_samples(few, 0, many).repeated == 2);
  CHECK(count_samples(few, 0, many).missed == many - 3);
  const std::vector<RankSamples> beyond = {{0, 0, {0, 1, 5, -1}}, {1, 0, {5, 2}}};
  CHECK(count_samples(beyond, 0, 4).repeated == 1);
  CHECK(count_samples(beyond, 0, 4).missed == 1);
}

TEST_CASE("transfers are counted by kind and group and divided by steps") {
  JournalBuilder journal(2);
  journal.group({0, 1}, 0);
  const SiteId site = journal.site("all_reduce", 3);
  for (int step = 0; step < 3; ++step) {
    journal.call(0, OpKind::all_reduce, site, 100);
    journal.call(0, OpKind::all_reduce, site, 50);
    journal.call(0, OpKind::all_gather, site, 10, Outcome::ok, GroupId{1});
  }
  const auto counts = transfers_per_step(transfers_of(journal.journal(), 0), 3);
  const std::vector<TransferCount> expected = {{OpKind::all_reduce, "world", 2, 600},
                                               {OpKind::all_gather, "ranks 0-1", 1, 40}};
  CHECK(transfer_differences(expected, counts).empty());
  CHECK(transfers_per_step(transfers_of(journal.journal(), 0), 2).empty());
  CHECK(transfers_of(journal.journal(), 0, {0, 2}) ==
        std::vector<TransferCount>{{OpKind::all_reduce, "world", 2, 600, 2}});
  CHECK(transfer_differences({}, counts).size() == 2);
}

// A ring of 4: every rank passes on three of four parts, once or twice.
TEST_CASE("what a rank sends follows from the call and the number of members") {
  const auto sent = [](OpKind kind) { return bytes_sent({kind, "world", 1, 400, 4}); };
  CHECK(sent(OpKind::all_reduce) == 600);
  CHECK(sent(OpKind::reduce_scatter) == 300);
  CHECK(sent(OpKind::all_gather) == 1200);  // 400 are its own part
  CHECK(sent(OpKind::all_to_all) == 300);
  CHECK(sent(OpKind::broadcast) == 400);
  CHECK(sent(OpKind::send) == 400);
  CHECK(sent(OpKind::recv) == 0);
  CHECK(bytes_sent({OpKind::copy, "own GPUs", 1, 400, 0}) == 400);
  CHECK(bytes_sent({OpKind::all_reduce, "rank 0", 1, 400, 1}) == 0);
}

TEST_CASE("running out of memory is LS401 with what the memory is for") {
  RunResult run;
  run.ends.resize(2);
  run.memory.resize(2);
  run.ends[1] = {RankEnd::Kind::raised, site_id("allocate"), "out of memory: 10 bytes asked", true};
  DeviceMemory& memory = run.memory[1][DeviceId{0}];
  memory.capacity = 4_GiB;
  memory.held = 3_GiB;
  memory.held_by_purpose[static_cast<size_t>(Purpose::parameter)] = 1_GiB;
  memory.held_by_purpose[static_cast<size_t>(Purpose::activation)] = 2_GiB;
  const auto findings = memory_fits(run);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS401");
  CHECK(findings[0].ranks == RankSet({1}));
  REQUIRE(findings[0].why.ways.size() == 1);
  CHECK(findings[0].why.ways[0].value ==
        "3.0 GiB of 4.0 GiB held: activation 2.0 GiB, parameter 1.0 GiB");
  run.ends[1] = {};
  CHECK(memory_fits(run).empty());
}

TEST_CASE("two runs are the same when rows, times and ends are") {
  const auto build = [](int64_t elements, Outcome outcome) {
    JournalBuilder journal(2);
    const SiteId site = journal.site("all_reduce", 3);
    journal.call(0, OpKind::all_reduce, site, 4);
    journal.call(1, OpKind::all_reduce, site, elements, outcome);
    return journal;
  };
  JournalBuilder left = build(4, Outcome::ok);
  CHECK(deterministic(left.run(), build(4, Outcome::ok).run()).empty());
  CHECK(deterministic(left.run(), build(5, Outcome::ok).run()).size() == 1);
  const auto found = deterministic(left.run(), build(4, Outcome::failed).run());
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 1);
}

TEST_CASE("an element that Adam takes by its gradient's rounding may be further apart") {
  UpdateSensitivity sensitivity;
  sensitivity.by_error = {0, 1024, 1e9F};
  sensitivity.largest_gradient = 1;
  sensitivity.at_most = 0.5;
  const EqualityRule rule{16};
  const double error = 2 * gamma(16, DType::fp32);
  CHECK(rounding_bound(rule, DType::fp32, 1, &sensitivity, 0) == Approx(error).epsilon(1e-12));
  CHECK(rounding_bound(rule, DType::fp32, 1, &sensitivity, 1) ==
        Approx(1025 * error).epsilon(1e-12));
  CHECK(rounding_bound(rule, DType::fp32, 1, &sensitivity, 2) == Approx(0.5 + error));
  CHECK(rounding_bound({0}, DType::fp32, 1, &sensitivity, 2) == 0);

  // 2 gamma_16 is 2^-19, a little more: 2^-12 is a hundred times that, and an eighth of element
  // 1's.
  std::vector<NamedValues> single = {{"w", 0, Values::of(DType::fp32, {1, 1, 1})}};
  std::vector<NamedValues> run = single;
  run[0].values = Values::of(DType::fp32, {1, 1 + 0x1p-12, 1.25});
  CHECK(equals_single_device(run, single, rule).size() == 1);
  run[0].sensitivity = &sensitivity;
  CHECK(equals_single_device(run, single, rule).size() == 1);  // one device did not update it
  single[0].sensitivity = &sensitivity;
  CHECK(equals_single_device(run, single, rule).empty());
  run[0].values = Values::of(DType::fp32, {1 + 0x1p-12, 1, 1});
  CHECK(equals_single_device(run, single, rule).size() == 1);
}

TEST_CASE("a part of a parameter takes the sensitivity of its elements from the one device") {
  UpdateSensitivity sensitivity;
  sensitivity.by_error = {0, 0, 1024};
  sensitivity.largest_gradient = 1;
  sensitivity.at_most = 0.5;
  const EqualityRule rule{16};
  std::vector<NamedValues> single = {{"w", 0, Values::of(DType::fp32, {1, 1, 1})}};
  single[0].sensitivity = &sensitivity;
  std::vector<NamedValues> run = {{"w", 1, Values::of(DType::fp32, {1, 1 + 0x1p-12}), 1}};
  CHECK(equals_single_device(run, single, rule).empty());
  run[0].values = Values::of(DType::fp32, {1 + 0x1p-12, 1});
  CHECK(equals_single_device(run, single, rule).size() == 1);
}

TEST_CASE("wide parameters are compared with the narrow ones of one device") {
  const EqualityRule rule{4};  // gamma_4 of bf16 is about 2^-6
  const std::vector<NamedValues> single = {{"w", 0, Values::of(DType::bf16, {1, 2})}};
  std::vector<NamedValues> run = {{"w", 0, Values::of(DType::fp32, {1.01, 2})}};
  CHECK(equals_single_device(run, single, rule).empty());
  run[0].values.set(0, 1.25);
  CHECK(equals_single_device(run, single, rule).size() == 1);
  CHECK(equals_single_device(run, single, {}).size() == 1);
}
