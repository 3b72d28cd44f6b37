#include <catch2/catch.hpp>

#include "properties/logged/metric_is_global.hpp"

using namespace lockstep;

namespace metric_is_global_test {

namespace {

GlobalMetric metric(std::initializer_list<double> values) {
  GlobalMetric made;
  made.key = "val_f1";
  int32_t rank = 0;
  for (const double value : values) {
    made.ranks.push_back({rank++, value, value, 8, 0, 2});
  }
  return made;
}

std::vector<std::string> codes(const GlobalMetric& metric) {
  std::vector<std::string> found;
  for (const Finding& finding : metric_is_global({&metric, 1})) {
    found.push_back(finding.code);
  }
  return found;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("a value that all ranks share and one device confirms is no finding") {
  GlobalMetric loss = metric({0.25, 0.25});
  loss.synchronised = true;
  CHECK(codes(loss).empty());
  loss.rule = "it is never the mean of its parts";
  loss.single_device = 0.25 * (1 + 0x1p-22);  // within rounding
  CHECK(codes(loss).empty());
}

TEST_CASE("a mean that one device contradicts is LS301 only where a rule speaks against it") {
  GlobalMetric f1 = metric({0.7619, 0.7619});
  f1.synchronised = true;
  f1.single_device = 0.8;
  CHECK(codes(f1).empty());
  f1.rule = "F1 is never the mean of its parts";
  CHECK(codes(f1) == Codes{"LS301"});
}

TEST_CASE("an object that one device contradicts is LS302, unless ranks evaluate other samples") {
  GlobalMetric f1 = metric({0.7619, 0.7619});
  f1.is_object = true;
  f1.single_device = 0.8;
  CHECK(codes(f1) == Codes{"LS302"});
  f1.is_told_already = true;  // LS304 tells that
  CHECK(codes(f1).empty());
}

TEST_CASE("ranks that show other values are LS302, in training a note") {
  GlobalMetric loss = metric({0.25, 0.5});
  CHECK(codes(loss) == Codes{"LS302"});
  CHECK(metric_is_global({&loss, 1}).front().level == Level::error);
  loss.in_training = true;
  CHECK(metric_is_global({&loss, 1}).front().level == Level::note);
}

TEST_CASE("a loss that ranks do not have is LS302 where their placeholder is written or counted") {
  GlobalMetric loss = metric({-1, -1, 0.5});
  loss.why_without_loss = "only the last stage computes it";
  loss.loss_remedy = "let it send the loss";
  loss.in_training = true;
  loss.ranks[0].is_of_missing_loss = true;
  loss.ranks[1].is_of_missing_loss = true;
  const std::vector<Finding> written = metric_is_global({&loss, 1});
  REQUIRE(written.size() == 1);
  CHECK(written.front().code == "LS302");
  CHECK(written.front().level == Level::error);
  CHECK(written.front().title == "`val_f1` is made of a loss that ranks 0-1 do not have");
  CHECK(written.front().fix == std::vector<std::string>{"let it send the loss"});
  loss.synchronised = true;
  loss.ranks = {loss.ranks[2], loss.ranks[1]};  // rank 0 has it, and the mean counts another's -1
  CHECK(codes(loss) == Codes{"LS302"});
  loss.ranks.pop_back();
  CHECK(codes(loss).empty());
}

TEST_CASE("a value on the CPU is moved before NCCL can reduce it") {
  GlobalMetric loss = metric({0.25, 0.5});
  CHECK(metric_is_global({&loss, 1}).front().fix ==
        std::vector<std::string>{"add sync_dist: true"});
  loss.is_out_of_reach = true;
  CHECK(metric_is_global({&loss, 1}).front().fix.size() == 2);
}

TEST_CASE("rank 0's own value is LS302 where one device contradicts it") {
  GlobalMetric loss = metric({0.25});
  loss.rank_zero_only = true;
  CHECK(codes(loss).empty());
  loss.single_device = 0.5;
  CHECK(codes(loss) == Codes{"LS302"});
}

TEST_CASE("a weight that lost its fraction is LS307 with the factor") {
  // 19 samples on 2 ranks: 9.5 is floored to 9.
  GlobalMetric loss = metric({9.5 / 9, 9.5 / 9});
  loss.synchronised = true;
  loss.ranks[0].batch_sizes = 10;
  loss.ranks[1].batch_sizes = 9;
  loss.ranks[0].common_batch_sizes = loss.ranks[1].common_batch_sizes = 9;
  const std::vector<Finding> found = metric_is_global({&loss, 1});
  REQUIRE(found.size() == 1);
  CHECK(found.front().code == "LS307");
  CHECK(found.front().title.find("1.05556 times too large") != std::string::npos);
  loss.ranks[0].batch_sizes = 9;
  CHECK(codes(loss).empty());
}

TEST_CASE("a mean of what cannot be averaged is reported beside the fraction that it lost") {
  // The two defects of one key: 10 samples on 3 ranks, and F1 of each batch.
  GlobalMetric f1 = metric({0.6 * 10 / 9, 0.6 * 10 / 9, 0.6 * 10 / 9});
  f1.synchronised = true;
  for (RankMetric& rank : f1.ranks) {
    rank.batch_sizes = rank.rank == 0 ? 4 : 3;
    rank.common_batch_sizes = 3;
  }
  f1.rule = "F1 is never the mean of its parts";
  f1.single_device = 0.6;
  CHECK(codes(f1) == Codes{"LS307"});
  f1.single_device = 10.0 / 12;
  CHECK(codes(f1) == Codes{"LS307", "LS301"});
}

TEST_CASE("a guess at what is wrong is left out where another finding explains it, a rule is not") {
  GlobalMetric total = metric({0, 0});
  total.single_device = 22.75;
  total.other_rule = "it is not a mean over samples";
  CHECK(codes(total) == Codes{"LS301"});
  total.is_told_already = true;
  CHECK(codes(total).empty());
  total.rule = "F1 is never the mean of its parts";
  CHECK(codes(total) == Codes{"LS301"});
}

TEST_CASE("what stands behind a guard of the rank is LS302, and what is reduced there is not") {
  GlobalMetric loss = metric({0.25});
  loss.world_size = 2;
  loss.single_device = 0.5;
  REQUIRE(codes(loss) == Codes{"LS302"});
  CHECK(metric_is_global({&loss, 1}).front().fix ==
        std::vector<std::string>{"take it out of the guard, and add sync_dist: true"});
  loss.synchronised = true;
  CHECK(codes(loss).empty());  // LS101 or LS303
  loss.synchronised = false;
  loss.single_device = 0.25;
  CHECK(codes(loss).empty());
}

}  // namespace metric_is_global_test
