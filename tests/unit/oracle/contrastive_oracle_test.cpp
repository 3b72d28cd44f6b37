// NTXentLoss against recordings of lightly 1.6 on torch 2.11 (tests/oracle/contrastive.py), and its
// relatives against torch's own functions (tests/oracle/compared_samples.py).
#include <catch2/catch.hpp>

#include "model/network/arithmetic/contrastive_loss.hpp"
#include "tests/unit/oracle/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;
using nlohmann::json;

namespace contrastive_oracle_test {

namespace {

/// What each rank knows of its own views, and of all that they are compared with.
struct RankViews {
  Values embeddings;
  Values first;
  Values second;
};

Values numbers_from(const json& list) {
  Values values(DType::fp64, std::ssize(list));
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, list[static_cast<size_t>(i)].get<double>());
  }
  return values;
}

Values joined(const std::vector<RankViews>& ranks, Values RankViews::*views) {
  std::vector<double> all;
  for (const RankViews& rank : ranks) {
    for (int64_t i = 0; i < (rank.*views).size(); ++i) {
      all.push_back((rank.*views).number(i));
    }
  }
  Values values(DType::fp64, std::ssize(all));
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, all[static_cast<size_t>(i)]);
  }
  return values;
}

void add(Values& sum, const Values& more) {
  for (int64_t i = 0; i < sum.size(); ++i) {
    sum.set(i, sum.number(i) + more.number(i));
  }
}

json list_of(const Values& values) {
  json list = json::array();
  for (int64_t i = 0; i < values.size(); ++i) {
    list.push_back(values.number(i));
  }
  return list;
}

struct RankResult {
  double loss = 0;
  Values first;
  Values second;
  Values first_of_all;
  Values second_of_all;
};

RankResult compared(const ComparedViews& views) {
  RankResult result{0, Values(DType::fp64, views.first.size()),
                    Values(DType::fp64, views.second.size()),
                    Values(DType::fp64, views.first_of_all.size()),
                    Values(DType::fp64, views.second_of_all.size())};
  Values loss(DType::fp64, 1);
  contrastive_forward(views, loss);
  result.loss = loss.number(0);
  contrastive_backward(views, 1,
                       {result.first, result.second, result.first_of_all, result.second_of_all});
  return result;
}

ComparisonKind kind_of(const json& setting) {
  const std::string loss = setting.value("loss", "NTXentLoss");
  return loss == "InfoNCE"      ? ComparisonKind::info_nce
         : loss == "ClipLoss"   ? ComparisonKind::both_ways
         : loss == "SigLipLoss" ? ComparisonKind::pairs
         : loss == "SupConLoss" ? ComparisonKind::labels
                                : ComparisonKind::nt_xent;
}

Values labels_of(const json& setting) {
  const json given = setting.value("labels", json::array());
  Values labels(DType::int64, std::ssize(given));
  for (int64_t i = 0; i < labels.size(); ++i) {
    labels.set_integer(i, given[static_cast<size_t>(i)].get<int64_t>());
  }
  return labels;
}

void check_recording(const json& recorded) {
  const json& setting = recorded["setting"];
  const int64_t features = setting["features"];
  const int64_t elements = setting["samples"].get<int64_t>() * features;
  const double temperature = setting.value("temperature", 0.5);
  const bool gathers = setting.value("gathers", false) && setting["ranks"] > 1;
  const Values labels = labels_of(setting);
  std::vector<RankViews> ranks;
  for (const json& rank : recorded["ranks"]) {
    RankViews& views =
        ranks.emplace_back(RankViews{numbers_from(rank["embeddings"]),
                                     Values(DType::fp64, elements), Values(DType::fp64, elements)});
    normalised_views(views.embeddings, features, views.first, views.second);
  }
  const Values first_of_all = joined(ranks, &RankViews::first);
  const Values second_of_all = joined(ranks, &RankViews::second);
  std::vector<RankResult> results;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankViews& own = ranks[rank];
    const int64_t first_sample = gathers ? static_cast<int64_t>(rank) * elements / features : 0;
    ComparedViews views{own.first,
                        own.second,
                        gathers ? first_of_all : own.first,
                        gathers ? second_of_all : own.second,
                        features,
                        first_sample,
                        temperature,
                        kind_of(setting)};
    views.bias = setting.value("bias", 0.0);
    views.factor = temperature / setting.value("base", temperature);
    views.labels = &labels;
    results.push_back(compared(views));
  }
  // What all_reduce makes of the gradients of gathered views.
  Values first_sum = results.front().first_of_all;
  Values second_sum = results.front().second_of_all;
  for (size_t rank = 1; rank < results.size() && gathers; ++rank) {
    add(first_sum, results[rank].first_of_all);
    add(second_sum, results[rank].second_of_all);
  }
  for (size_t rank = 0; rank < results.size(); ++rank) {
    INFO("rank " << rank);
    const json& theirs = recorded["ranks"][rank];
    const RankResult& ours = results[rank];
    CHECK(ours.loss == Approx(theirs["loss"].get<double>()).epsilon(1e-12));
    const int64_t begin = static_cast<int64_t>(rank) * elements;
    const Values first_own = gathers ? first_sum.slice(begin, elements) : ours.first_of_all;
    const Values second_own = gathers ? second_sum.slice(begin, elements) : ours.second_of_all;
    Values gradient(DType::fp64, 2 * elements);
    views_backward(ranks[rank].embeddings, features,
                   {ours.first, ours.second, first_own, second_own}, gradient);
    const json numbers = list_of(gradient);
    REQUIRE(numbers.size() == theirs["gradient"].size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      CHECK(numbers[i].get<double>() ==
            Approx(theirs["gradient"][i].get<double>()).epsilon(1e-10).margin(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("NTXentLoss computes what lightly's does, alone and with gathered samples") {
  int compared_recordings = 0;
  for (const auto& path : recordings_in("contrastive")) {
    ++compared_recordings;
    DYNAMIC_SECTION(path.stem().string()) { check_recording(recording_at(path)); }
  }
  CHECK(compared_recordings == 8);
}

TEST_CASE("losses that compare samples are what torch's functions make of their definitions") {
  int compared_recordings = 0;
  for (const auto& path : recordings_in("compared_samples")) {
    ++compared_recordings;
    DYNAMIC_SECTION(path.stem().string()) { check_recording(recording_at(path)); }
  }
  CHECK(compared_recordings == 10);
}

}  // namespace contrastive_oracle_test
