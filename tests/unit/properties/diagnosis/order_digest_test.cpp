#include "properties/diagnosis/order_digest.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/properties/journal_builder.hpp"

using namespace lockstep;

namespace order_digest_test {
using test::JournalBuilder;
using test::Lists;

namespace {

/// A copy that a kernel waits for, which uses a buffer twice.
struct Uses {
  Op copy;
  Op kernel;
  Slice read{BufferId{1}, DType::fp32, 0, 8};
  Slice written{BufferId{2}, DType::fp32, 0, 8};
  bool waits = true;
  bool settles = false;

  Uses() {
    copy.kind = OpKind::copy;
    copy.stream = copy_stream;
    copy.site = SiteId{3};
    kernel.kind = OpKind::compute;
    kernel.kernel = Kernel::scale;
    kernel.stream = compute_stream;
    kernel.site = SiteId{4};
  }

  size_t digest(int32_t rank = 0) const {
    JournalBuilder journal(2);
    const Ticket copied = journal.op(rank, copy, {{}, {}, {read}, {}});
    if (settles) {
      journal.settle(rank, copied);
    }
    const std::vector<Ticket> after = waits ? std::vector<Ticket>{copied} : std::vector<Ticket>{};
    journal.op(rank, kernel, {after, {read}, {written}, {}});
    return order_digest(journal.journal(), rank);
  }
};

template <class Change>
size_t digest_with(const Change& change) {
  Uses uses;
  change(uses);
  return uses.digest();
}

}  // namespace

TEST_CASE("ranks that use their buffers alike have one digest, whomever they exchange with") {
  CHECK(Uses().digest(0) == Uses().digest(1));
  CHECK(digest_with([](Uses& uses) { uses.copy.peer = 1; }) == Uses().digest());
}

TEST_CASE("each thing that may make a race is part of the digest") {
  std::set<size_t> digests{Uses().digest()};
  const auto differs = [&](const auto& change) {
    CHECK(digests.insert(digest_with(change)).second);
  };
  differs([](Uses& uses) { uses.waits = false; });
  differs([](Uses& uses) { uses.settles = true; });
  differs([](Uses& uses) { uses.kernel.stream = copy_stream; });
  differs([](Uses& uses) { uses.kernel.kernel = Kernel::copy; });
  differs([](Uses& uses) { uses.kernel.site = SiteId{5}; });
  differs([](Uses& uses) { uses.read.buffer = BufferId{7}; });
  differs([](Uses& uses) { uses.read.begin = 1; });
  differs([](Uses& uses) { uses.read.elements = 9; });
  differs([](Uses& uses) { uses.written.dtype = DType::bf16; });
  differs([](Uses& uses) { uses.written = uses.read; });
  differs([](Uses& uses) { std::swap(uses.read, uses.written); });
}

TEST_CASE("a lane that starts later beside the first is part of the digest") {
  const auto digest = [](bool starts_later) {
    const Uses uses;
    JournalBuilder journal(1);
    const auto work = [&](int32_t lane) {
      journal.op(0, uses.kernel, {{}, {uses.read}, {uses.written}, {}}, Outcome::ok,
                 LaneId{static_cast<uint16_t>(lane)});
    };
    work(0);
    work(starts_later ? 0 : 1);
    work(starts_later ? 1 : 0);
    return order_digest(journal.journal(), 0);
  };
  CHECK(digest(true) != digest(false));
}

}  // namespace order_digest_test
