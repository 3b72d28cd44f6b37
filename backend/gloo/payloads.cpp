#include "backend/gloo/payloads.hpp"

#include <algorithm>

#include "backend/gloo/collective_workspace.hpp"

namespace lockstep::backend {

namespace {

// Whole elements of every type, and no less than a page.
size_t chunk_bytes_for(size_t held_at_once) {
  constexpr size_t step = 4096;
  const auto share =
      static_cast<size_t>(collective_workspace.count()) / std::max<size_t>(1, held_at_once);
  return std::max(step, share / step * step);
}

template <class Visit>
void for_each_chunk(size_t bytes, size_t chunk_bytes, const Visit& visit) {
  for (size_t begin = 0; begin < bytes; begin += chunk_bytes) {
    visit(begin, std::min(chunk_bytes, bytes - begin));
  }
}

}  // namespace

Payloads::Payloads(std::span<const int32_t> members, bool sums, uint64_t slot, Mailbox& mailbox)
    : members_(members),
      slot_(slot),
      mailbox_(mailbox),
      chunk_bytes_(chunk_bytes_for(sums ? members.size() : 1)) {}

void Payloads::send(int64_t member, const ValueView& bytes) {
  for_each_chunk(bytes.bytes.size(), chunk_bytes_, [&](size_t begin, size_t size) {
    const size_t chunk = begin / chunk_bytes_;
    sent_.resize(std::max(sent_.size(), chunk + 1));
    sent_[chunk].push_back(mailbox_.send(rank_of(member), slot_,
                                         ValueView{bytes.bytes.subspan(begin, size), bytes.owner}));
  });
}

void Payloads::receive_into(int64_t member, std::span<std::byte> to) {
  for_each_chunk(to.size(), chunk_bytes_, [&](size_t begin, size_t size) {
    received_.push_back(mailbox_.receive_into(rank_of(member), slot_, to.subspan(begin, size)));
  });
}

void Payloads::wait_for(Messages& messages) {
  for (const auto& message : messages) {
    mailbox_.wait(*message);
  }
  messages.clear();
}

void Payloads::wait_for_received() { wait_for(received_); }

void Payloads::wait_for_sent() {
  for (Messages& chunk : sent_) {
    wait_for(chunk);
  }
  sent_.clear();
}

void Payloads::drop(int64_t member, int64_t bytes) {
  for_each_chunk(static_cast<size_t>(bytes), chunk_bytes_, [&](size_t, size_t size) {
    const auto message = mailbox_.receive(rank_of(member), slot_, static_cast<int64_t>(size));
    mailbox_.wait(*message);
  });
}

void Payloads::gather_chunks(
    int64_t bytes, const Contributions& here,
    const std::function<void(size_t begin, const Contributions& parts)>& take) {
  for_each_chunk(static_cast<size_t>(bytes), chunk_bytes_, [&](size_t begin, size_t size) {
    Messages incoming(members_.size());
    for (size_t member = 0; member < members_.size(); ++member) {
      if (here[member].empty()) {
        incoming[member] = mailbox_.receive(members_[member], slot_, static_cast<int64_t>(size));
      }
    }
    Contributions parts;
    for (size_t member = 0; member < members_.size(); ++member) {
      if (incoming[member] != nullptr) {
        mailbox_.wait(*incoming[member]);
      }
      parts.push_back(incoming[member] != nullptr ? incoming[member]->bytes()
                                                  : here[member].subspan(begin, size));
    }
    if (const size_t chunk = begin / chunk_bytes_; chunk < sent_.size()) {
      wait_for(sent_[chunk]);
    }
    take(begin, parts);
  });
}

}  // namespace lockstep::backend
