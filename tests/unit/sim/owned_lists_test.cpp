#include "sim/owned_lists.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <vector>

using namespace lockstep;
using lockstep::sim::OwnedListsPool;

namespace owned_lists_test {

namespace {

struct GiveBack {
  void operator()(const OpLists* lists) const { OwnedListsPool::give_back(lists); }
};
using Owned = std::unique_ptr<const OpLists, GiveBack>;

struct Lists {
  std::vector<Slice> reads{{BufferId{3}, DType::fp32, 0, 8}};
  std::vector<Slice> writes{{BufferId{4}, DType::bf16, 2, 6}, {BufferId{5}, DType::fp32, 0, 1}};
  std::vector<int64_t> splits{1, 2, 3};
  std::vector<double> scalars{0.5};
  OpLists views() const { return {{}, reads, writes, splits, scalars}; }
};

void check_holds(const Owned& lists, const Lists& expected) {
  const OpLists& views = *lists;
  CHECK(std::vector<Slice>(views.reads.begin(), views.reads.end()) == expected.reads);
  CHECK(std::vector<Slice>(views.writes.begin(), views.writes.end()) == expected.writes);
  CHECK(std::vector<int64_t>(views.splits.begin(), views.splits.end()) == expected.splits);
  CHECK(std::vector<double>(views.scalars.begin(), views.scalars.end()) == expected.scalars);
}

}  // namespace

TEST_CASE("lists are owned: they stay as they were when they were taken") {
  OwnedListsPool pool;
  for (const bool shares : {false, true}) {
    pool.share(shares);
    Lists given;
    const Owned owned(pool.take(given.views()));
    given.reads[0].begin = 99;
    given.splits[1] = 99;
    check_holds(owned, Lists());
  }
}

TEST_CASE("a pool that shares keeps equal lists once, until the last holder gives them back") {
  OwnedListsPool pool;
  pool.share(true);
  Owned first(pool.take(Lists().views()));
  Owned second(pool.take(Lists().views()));
  CHECK(first.get() == second.get());
  first.reset();
  check_holds(second, Lists());
  const Owned third(pool.take(Lists().views()));
  CHECK(third.get() == second.get());
}

TEST_CASE("lists that differ in one entry are not shared") {
  OwnedListsPool pool;
  pool.share(true);
  std::vector<Lists> all(8);
  all[1].reads[0].buffer = BufferId{9};
  all[2].reads[0].dtype = DType::bf16;
  all[3].writes[0].begin = 0;
  all[4].writes[1].elements = 2;
  all[5].splits[2] = 4;
  all[6].scalars[0] = -0.5;
  // As many slices altogether, of which one is read in place of written.
  all[7].reads.push_back(all[7].writes[0]);
  all[7].writes.erase(all[7].writes.begin());
  std::vector<Owned> owned;
  for (const Lists& lists : all) {
    owned.emplace_back(pool.take(lists.views()));
  }
  for (size_t left = 0; left < all.size(); ++left) {
    check_holds(owned[left], all[left]);
    for (size_t right = 0; right < left; ++right) {
      CHECK(owned[left].get() != owned[right].get());
    }
  }
}

}  // namespace owned_lists_test
