#include <algorithm>
#include <array>
#include <cstring>

#include "backend/gloo/collective_windows.hpp"
#include "backend/gloo/exchange.hpp"
#include "backend/gloo/payloads.hpp"
#include "backend/gloo/sum_in_parts.hpp"
#include "model/core/ensure.hpp"
#include "model/core/random.hpp"

namespace lockstep::backend {

namespace {

// The header that every member sends to every other one before the payload.
struct Header {
  int64_t carries_values = 0;
  int32_t by_color = 0;
  int32_t color = 0;
  DType dtype = DType::fp32;
  Reduction reduction = Reduction::sum;
  uint8_t sums_in_parts = 0;         ///< it has values, and can keep those of the others
  uint8_t sends_nothing = 0;         ///< to anybody: it takes part all the same
  std::array<uint8_t, 4> padding{};  ///< sent as it is: no byte without a value
};
static_assert(sizeof(Header) == 24);

// Payloads of at most this size travel with the header, whether they carry values or not.
constexpr int64_t inline_limit = 4096;

// Data that is sent in several steps once the headers show that all members agree.
bool is_long_sum(const Op& op) {
  return op.kind == OpKind::all_reduce && op.bytes.count() > inline_limit;
}

bool works_in_place(OpKind kind) {
  return kind == OpKind::all_reduce || kind == OpKind::reduce || kind == OpKind::broadcast;
}

class Collective final : public Exchange {
 public:
  Collective(const Part& part, RankState& rank);

  void post() override;
  void receive(Status& status) override;
  void deliver() override { await_sends(); }
  bool hears_from_all() const override { return true; }

 private:
  bool exchanges_splits() const { return op_.kind == OpKind::all_to_all; }
  bool is_inline(const Window& window) const {
    return !exchanges_splits() && window.bytes <= inline_limit;
  }
  uint64_t header_slot() const;
  uint64_t payload_slot() const { return random_key(header_slot(), 1); }
  int64_t header_size(const Window& window) const;
  std::vector<std::byte> header_for(int64_t member) const;
  ValueView own_payload(const Window& window) const;

  void send_to(int64_t member);
  void send_payload_to(int64_t member);
  void send_payloads();
  void take_header(int64_t member);
  bool comes_as_payload(int64_t member) const;
  void drop_payloads();
  void ensure_splits_meet();
  void await_sends();
  bool all_carry_values() const;
  ReductionRule rule() const { return {op_.reduction, rank_.shared.options.average_order}; }
  bool keeps_result() const;
  bool store_sum_in_parts();
  bool is_complete() const;
  void reduce_into(std::span<std::byte> memory);
  void place_in(std::span<std::byte> memory);
  void make_group();

  const Part& part_;
  const Op& op_;
  RankState& rank_;
  int64_t members_;
  int64_t self_;
  int64_t root_;
  CollectiveWindows windows_;
  Payloads payloads_;
  ValueView input_;
  // By member, from here on.
  std::vector<Header> headers_;
  std::vector<std::vector<int64_t>> splits_;  ///< all_to_all: what it sends to each, gets from each
  std::vector<ValueView> contributions_;      ///< each member sees them as of its own type
  std::vector<std::unique_ptr<Message>> incoming_;
  std::vector<std::unique_ptr<Message>> outgoing_;
};

int64_t index_of(const Part& part, int32_t member) {
  return std::ranges::find(part.members(), member) - part.members().begin();
}

Collective::Collective(const Part& part, RankState& rank)
    : part_(part),
      op_(part.op()),
      rank_(rank),
      members_(static_cast<int64_t>(part.members().size())),
      self_(index_of(part, rank.rank)),
      root_(has_root(op_.kind) ? index_of(part, op_.peer) : 0),
      windows_(op_, members_, self_, root_),
      payloads_(part.members(), reduces(op_.kind), payload_slot(), rank.mailbox) {
  const auto count = static_cast<size_t>(members_);
  headers_.resize(count);
  splits_.resize(count);
  contributions_.resize(count);
  incoming_.resize(count);
}

// Members whose calls differ in what must agree use different slots, and so wait forever.
uint64_t Collective::header_slot() const {
  uint64_t slot = random_key(rank_.shared.run, part_.communicator());
  slot = random_key(slot, static_cast<uint64_t>(part_.call()));
  slot = random_key(slot, static_cast<uint64_t>(op_.kind) + 2);
  if (exchanges_splits()) {
    return slot;  // its sizes differ between members by design: compared one by one
  }
  slot = random_key(slot, static_cast<uint64_t>(op_.bytes.count()));
  slot = random_key(slot, static_cast<uint64_t>(root_));
  const auto reduce_scatter_splits =
      op_.kind == OpKind::reduce_scatter ? op_.list().splits : std::span<const int64_t>{};
  for (const int64_t split : reduce_scatter_splits) {
    slot = random_key(slot, static_cast<uint64_t>(split));
  }
  return slot;
}

int64_t Collective::header_size(const Window& window) const {
  const int64_t splits =
      exchanges_splits() ? 2 * members_ * static_cast<int64_t>(sizeof(int64_t)) : 0;
  return static_cast<int64_t>(sizeof(Header)) + splits + (is_inline(window) ? window.bytes : 0);
}

// No bytes where there is no input.
ValueView Collective::own_payload(const Window& window) const {
  if (input_.bytes.empty()) {
    return {};
  }
  const auto begin = static_cast<size_t>(window.begin);
  const auto bytes = static_cast<size_t>(window.bytes);
  ensure(begin + bytes <= input_.bytes.size(), "a collective's input holds all its parts");
  return {input_.bytes.subspan(begin, bytes), input_.owner};
}

std::vector<std::byte> Collective::header_for(int64_t member) const {
  const Window window = windows_.window(self_, member);
  std::vector<std::byte> bytes(sizeof(Header));
  std::memcpy(bytes.data(), &headers_[static_cast<size_t>(self_)], sizeof(Header));
  if (exchanges_splits()) {
    for (const auto* splits : {&windows_.sent(), &windows_.got()}) {
      const auto plain = std::as_bytes(std::span(*splits));
      bytes.insert(bytes.end(), plain.begin(), plain.end());
    }
  } else if (is_inline(window)) {
    const ValueView payload = own_payload(window);
    bytes.insert(bytes.end(), payload.bytes.begin(), payload.bytes.end());
    bytes.resize(static_cast<size_t>(header_size(window)));
  }
  return bytes;
}

void Collective::post() {
  const OpLists& lists = op_.list();
  if (!lists.reads.empty()) {
    input_ = rank_.view(lists.reads.front());
  } else if (works_in_place(op_.kind) && !lists.writes.empty()) {
    input_ = rank_.view(lists.writes.front());
  }
  if (!lists.reads.empty() && !lists.writes.empty() && !input_.bytes.empty() &&
      lists.reads.front().buffer == lists.writes.front().buffer) {
    // What comes is put into the buffer while the input goes out from it.
    const auto copy =
        std::make_shared<std::vector<std::byte>>(input_.bytes.begin(), input_.bytes.end());
    input_ = {*copy, copy};
  }
  const auto self = static_cast<size_t>(self_);
  headers_[self] = {input_.bytes.empty() ? 0 : 1,
                    (op_.flags & flag_color) != 0 ? 1 : 0,
                    op_.peer,
                    op_.dtype,
                    op_.reduction,
                    static_cast<uint8_t>(!input_.bytes.empty() && keeps_result() ? 1 : 0),
                    static_cast<uint8_t>(windows_.sends_nothing() ? 1 : 0),
                    {}};
  if (exchanges_splits()) {
    splits_[self] = windows_.sent();
    splits_[self].insert(splits_[self].end(), windows_.got().begin(), windows_.got().end());
  }
  contributions_[self] = own_payload(windows_.window(self_, self_));
  // Receives first: a send that finds its receive posted needs one message less.
  for (int64_t member = 0; member < members_; ++member) {
    if (member != self_) {
      incoming_[static_cast<size_t>(member)] =
          rank_.mailbox.receive(part_.members()[static_cast<size_t>(member)], header_slot(),
                                header_size(windows_.window(member, self_)));
    }
  }
  for (int64_t member = 0; member < members_; ++member) {
    if (member != self_) {
      send_to(member);
    }
  }
}

void Collective::send_to(int64_t member) {
  const int32_t peer = part_.members()[static_cast<size_t>(member)];
  outgoing_.push_back(rank_.mailbox.send(peer, header_slot(), header_for(member)));
  if (!is_inline(windows_.window(self_, member)) && !is_long_sum(op_)) {
    send_payload_to(member);
  }
}

void Collective::send_payload_to(int64_t member) {
  if (!input_.bytes.empty()) {
    payloads_.send(member, own_payload(windows_.window(self_, member)));
  }
}

void Collective::send_payloads() {
  for (int64_t member = 0; member < members_; ++member) {
    if (member != self_) {
      send_payload_to(member);
    }
  }
}

void Collective::take_header(int64_t member) {
  const auto index = static_cast<size_t>(member);
  rank_.mailbox.wait(*incoming_[index]);
  auto bytes = incoming_[index]->bytes();
  std::memcpy(&headers_[index], bytes.data(), sizeof(Header));
  bytes = bytes.subspan(sizeof(Header));
  const Window got = windows_.window(member, self_);
  if (exchanges_splits()) {
    splits_[index].resize(static_cast<size_t>(2 * members_));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(splits_[index])).begin());
  } else if (is_inline(got) && headers_[index].carries_values != 0) {
    contributions_[index] = {bytes, std::move(incoming_[index])};
  }
}

bool Collective::comes_as_payload(int64_t member) const {
  return member != self_ && !is_inline(windows_.window(member, self_)) &&
         headers_[static_cast<size_t>(member)].carries_values != 0;
}

// Whoever sends waits until it is taken.
void Collective::drop_payloads() {
  for (int64_t member = 0; member < members_; ++member) {
    if (comes_as_payload(member)) {
      payloads_.drop(member, windows_.window(member, self_).bytes);
    }
  }
}

// Every member sees the same splits, so all of them complete or none.
void Collective::ensure_splits_meet() {
  const auto count = static_cast<size_t>(members_);
  for (size_t from = 0; from < count; ++from) {
    for (size_t to = 0; to < count; ++to) {
      if (splits_[from][to] != splits_[to][count + from]) {
        rank_.mailbox.wait_for_abort();
      }
    }
  }
}

void Collective::receive(Status&) {
  for (int64_t member = 0; member < members_; ++member) {
    if (member != self_) {
      take_header(member);
    }
  }
  if (exchanges_splits()) {
    ensure_splits_meet();
  }
  incoming_.clear();
  if (is_long_sum(op_)) {
    if (store_sum_in_parts()) {
      return;
    }
    send_payloads();
  }
  if (op_.kind == OpKind::new_group) {
    make_group();
  } else if (!windows_.takes_result() || !keeps_result() || !is_complete()) {
    drop_payloads();
  } else {
    Slice output = op_.list().writes.front();
    output.elements = windows_.result_bytes(members_) / size_of(output.dtype);
    rank_.change(output, [this](std::span<std::byte> memory) {
      reduces(op_.kind) ? reduce_into(memory) : place_in(memory);
    });
  }
}

bool Collective::is_complete() const {
  return op_.kind == OpKind::broadcast || op_.kind == OpKind::scatter
             ? headers_[static_cast<size_t>(root_)].carries_values != 0
             : all_carry_values();
}

bool Collective::all_carry_values() const {
  return std::ranges::all_of(headers_, [](const Header& each) {
    return each.carries_values != 0 || each.sends_nothing != 0;
  });
}

bool Collective::keeps_result() const {
  return !op_.list().writes.empty() && rank_.carries_values(op_.list().writes.front());
}

// False: members differ in type, reduction or in what carries values, and each makes its own of the
// whole contributions. All decide by the same headers.
bool Collective::store_sum_in_parts() {
  const bool alike = std::ranges::all_of(headers_, [this](const Header& each) {
    return each.sums_in_parts != 0 && each.dtype == op_.dtype && each.reduction == op_.reduction;
  });
  if (!alike) {
    return false;
  }
  await_sends();
  const PartedSum sum{part_.members(), self_, payload_slot(), op_.dtype, rule()};
  rank_.change(op_.list().writes.front(), [&](std::span<std::byte> memory) {
    sum_in_parts(sum, rank_.mailbox, input_, memory);
  });
  return true;
}

// Into the buffer itself, chunk by chunk: what a chunk held has gone out to the others before.
void Collective::reduce_into(std::span<std::byte> memory) {
  Payloads::Contributions here;
  for (const ValueView& contribution : contributions_) {
    here.push_back(contribution.bytes);
  }
  payloads_.gather_chunks(static_cast<int64_t>(memory.size()), here,
                          [&](size_t begin, const Payloads::Contributions& parts) {
                            const size_t size = parts.front().size();
                            reduce(op_.dtype, rule(), parts, memory.subspan(begin, size));
                          });
}

// The parts of the others one after the other; of a scatter or a broadcast the root's.
void Collective::place_in(std::span<std::byte> memory) {
  const bool from_root = op_.kind == OpKind::scatter || op_.kind == OpKind::broadcast;
  size_t begin = 0;
  for (int64_t member = 0; member < members_; ++member) {
    const auto bytes = static_cast<size_t>(windows_.window(member, self_).bytes);
    if (bytes == 0 || (from_root && member != root_)) {
      continue;
    }
    const std::span<std::byte> place = memory.subspan(begin, bytes);
    if (comes_as_payload(member)) {
      payloads_.receive_into(member, place);
    } else {
      std::ranges::copy(contributions_[static_cast<size_t>(member)].bytes, place.begin());
    }
    begin += bytes;
  }
  payloads_.wait_for_received();
}

void Collective::make_group() {
  std::vector<int32_t> members;
  if ((op_.flags & flag_color) == 0) {
    for (const int64_t member : op_.list().splits) {
      members.push_back(static_cast<int32_t>(member));
    }
  } else if (op_.peer != no_color) {
    for (size_t member = 0; member < headers_.size(); ++member) {
      if (headers_[member].by_color != 0 && headers_[member].color == op_.peer) {
        members.push_back(part_.members()[member]);
      }
    }
    std::ranges::sort(members);
  }
  const uint64_t key = communicator_key(part_.communicator(), part_.call(), members);
  rank_.add_group(GroupId{static_cast<uint32_t>(op_.tag)}, key, std::move(members));
}

void Collective::await_sends() {
  for (const auto& message : outgoing_) {
    rank_.mailbox.wait(*message);
  }
  outgoing_.clear();
  payloads_.wait_for_sent();
}

}  // namespace

std::unique_ptr<Exchange> make_collective(const Part& part, RankState& rank) {
  return std::make_unique<Collective>(part, rank);
}

}  // namespace lockstep::backend
