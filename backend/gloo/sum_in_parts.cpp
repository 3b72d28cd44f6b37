#include "backend/gloo/sum_in_parts.hpp"

#include "backend/gloo/payloads.hpp"
#include "model/core/random.hpp"

namespace lockstep::backend {

namespace {

using Messages = std::vector<std::unique_ptr<Message>>;

class Parts {
 public:
  Parts(const PartedSum& sum, size_t bytes) : sum_(sum), bytes_(bytes) {}

  /// Of member `index`; whole elements.
  template <class Byte>
  std::span<Byte> of(std::span<Byte> whole, int64_t index) const {
    return whole.subspan(begin(index), begin(index + 1) - begin(index));
  }

 private:
  size_t begin(int64_t index) const {
    const auto width = static_cast<size_t>(size_of(sum_.dtype));
    return bytes_ / width * static_cast<size_t>(index) / sum_.members.size() * width;
  }

  const PartedSum& sum_;
  size_t bytes_;
};

void wait_for_all(Mailbox& mailbox, const Messages& messages) {
  for (const auto& message : messages) {
    mailbox.wait(*message);
  }
}

}  // namespace

void sum_in_parts(const PartedSum& sum, Mailbox& mailbox, const ValueView& input,
                  std::span<std::byte> output) {
  const Parts parts(sum, input.bytes.size());
  const auto count = static_cast<int64_t>(sum.members.size());
  const auto own = parts.of(output, sum.self);
  const auto for_each_other = [&](const auto& call) {
    for (int64_t member = 0; member < count; ++member) {
      if (member != sum.self) {
        call(member, sum.members[static_cast<size_t>(member)]);
      }
    }
  };

  Payloads summed(sum.members, true, random_key(sum.slot, 1), mailbox);
  for_each_other([&](int64_t member, int32_t) {
    summed.send(member, ValueView{parts.of(input.bytes, member), input.owner});
  });
  Payloads::Contributions here(static_cast<size_t>(count));
  here[static_cast<size_t>(sum.self)] = parts.of(input.bytes, sum.self);
  summed.gather_chunks(static_cast<int64_t>(own.size()), here,
                       [&](size_t begin, const Payloads::Contributions& chunk) {
                         reduce(sum.dtype, sum.rule, chunk,
                                own.subspan(begin, chunk.front().size()));
                       });
  // Sums of the others go where this member's contributions were.
  summed.wait_for_sent();

  const uint64_t gather = random_key(sum.slot, 2);
  Messages sums;
  for_each_other([&](int64_t member, int32_t rank) {
    sums.push_back(mailbox.receive_into(rank, gather, parts.of(output, member)));
  });
  for_each_other([&](int64_t, int32_t rank) {
    sums.push_back(mailbox.send(rank, gather, ValueView{own, nullptr}));
  });
  wait_for_all(mailbox, sums);
}

}  // namespace lockstep::backend
