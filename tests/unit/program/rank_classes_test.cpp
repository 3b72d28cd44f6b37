#include "model/program/by_rank.hpp"

#include <catch2/catch.hpp>
#include <memory>

using namespace lockstep;

namespace rank_classes_test {

TEST_CASE("a value is kept once for each class of ranks") {
  const auto classes = std::make_shared<const RankClasses>(std::vector<uint32_t>{0, 1, 2, 1, 2, 1});
  CHECK(classes->size() == 3);
  CHECK(classes->first(2) == 2);
  CHECK(classes->ranks_in(1) == 3);
  ByRank<int> values(6, classes);
  values[3] = 7;
  CHECK(values[5] == 7);
  CHECK(values[4] == 0);
  CHECK(values.size() == 6);
  CHECK(values.distinct().size() == 3);
  CHECK(values.first_sharing(4) == 2);
  CHECK(std::vector<int>(values.begin(), values.end()) == std::vector<int>{0, 7, 0, 7, 0, 7});
}

TEST_CASE("without classes each rank has a value of its own") {
  ByRank<int> values(3);
  values[1] = 5;
  values.push_back(9);
  CHECK(std::vector<int>(values.begin(), values.end()) == std::vector<int>{0, 5, 0, 9});
  CHECK(values.first_sharing(2) == 2);
  CHECK(values.ranks_of(1) == 1);
}

TEST_CASE("neighbours are first ranks of one neighbourhood") {
  // Two ranks compute a replica: those of rank 0, and three replicas that are alike.
  const RankClasses classes({0, 1, 2, 3, 2, 3, 2, 3}, {{0, 0, 1, 1, 2, 2, 3, 3}, {}});
  CHECK(classes.have_neighbours());
  CHECK(classes.are_neighbours(2, 3));
  CHECK_FALSE(classes.are_neighbours(1, 2));
  CHECK(classes.is_first(3));
  CHECK_FALSE(classes.is_first(5));
  CHECK(classes.meant_by(6, 3) == 7);
  CHECK(classes.meant_by(6, 0) == 0);
  CHECK_FALSE(RankClasses({0, 1, 1}).are_neighbours(1, 1));
}

namespace {

// Two stages of three tensor ranks each, in two replicas: rank = stage x 6 + replica x 3 + place.
// The first place differs from the others, and the first replica from the second.
RankClasses two_stages_of_three() {
  const std::vector<uint32_t> classes = {0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7};
  Neighbourhoods neighbourhoods;
  for (uint32_t rank = 0; rank < 12; ++rank) {
    neighbourhoods.of_rank.push_back(rank / 3 % 2);
    neighbourhoods.columns.push_back(rank % 3);
  }
  return RankClasses(classes, neighbourhoods);
}

}  // namespace

TEST_CASE("ranks of one column send to each other") {
  const RankClasses classes = two_stages_of_three();
  CHECK(classes.have_columns());
  CHECK(classes.are_neighbours(1, 5));
  CHECK_FALSE(classes.are_neighbours(0, 5));
  CHECK(classes.meant_by(11, 4) == 5);
  CHECK(classes.meant_by(11, 3) == 3);
}

TEST_CASE("a group stands for those of others of its classes") {
  const RankClasses classes = two_stages_of_three();
  const std::vector<int32_t> tensor_ranks = {0, 1, 2};
  CHECK(classes.group_of(1, tensor_ranks).stands_for_all);
  CHECK(classes.group_of(1, tensor_ranks).of_class == 2);
  CHECK(classes.group_of(1, tensor_ranks).is_of_neighbours);
  CHECK(classes.group_meant_by(2, tensor_ranks) == tensor_ranks);
  CHECK(classes.other_columns(tensor_ranks).empty());

  const std::vector<int32_t> replicas = {1, 4};
  CHECK(classes.group_of(1, replicas).stands_for_all);
  CHECK(classes.group_of(1, replicas).of_class == 1);
  CHECK_FALSE(classes.group_of(1, replicas).is_of_neighbours);
  CHECK(classes.group_meant_by(2, replicas) == std::vector<int32_t>{2, 5});
  CHECK(classes.other_columns(replicas) == std::vector<std::vector<int32_t>>{{2, 5}});

  const std::vector<int32_t> stages = {1, 7};
  CHECK(classes.group_of(1, stages).is_of_neighbours);
  CHECK(classes.group_meant_by(2, stages) == std::vector<int32_t>{2, 8});
  CHECK(classes.other_columns(std::vector<int32_t>{0, 6}).empty());

  const std::vector<int32_t> replica = {0, 1, 2, 6, 7, 8};
  CHECK(classes.group_of(5, replica).of_class == 2);
  CHECK(classes.group_of(5, replica).stands_for_all);
}

TEST_CASE("a class may have no part in a group that stands for others") {
  const RankClasses classes({0, 1, 1, 2, 2});
  CHECK(classes.group_of(1, std::vector<int32_t>{3, 4}).stands_for_all);
  CHECK(classes.group_of(1, std::vector<int32_t>{3, 4}).of_class == 0);
  CHECK_FALSE(classes.group_of(0, std::vector<int32_t>{2, 3, 4}).stands_for_all);
}

TEST_CASE("a group with some ranks of a class stands for no others") {
  const RankClasses classes = two_stages_of_three();
  CHECK_FALSE(classes.group_of(1, std::vector<int32_t>{0, 1}).stands_for_all);
  CHECK_FALSE(classes.group_of(1, std::vector<int32_t>{1, 5}).stands_for_all);
  CHECK_FALSE(classes.group_of(1, std::vector<int32_t>{1, 2, 4}).stands_for_all);
  CHECK(RankClasses({0, 1, 1}).group_of(1, std::vector<int32_t>{0, 1, 2}).stands_for_all);
  CHECK_FALSE(RankClasses({0, 1, 1}).group_of(1, std::vector<int32_t>{0, 1}).stands_for_all);
}

}  // namespace rank_classes_test
