#include "model/strategy/data_parallel/bagua/decentralized.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

using namespace bagua_sites;

int32_t shift_one_peer(int32_t member, int32_t members, int64_t step) {
  const int64_t half = members / 2;
  if (member < half) {
    return static_cast<int32_t>((step + member) % half + half);
  }
  const int64_t turned = (member - half - step) % half;
  return static_cast<int32_t>(turned < 0 ? turned + half : turned);
}

void DecentralizedAverage::prepare(Rank& rank) {
  average_ = rank.allocate(Purpose::communication, weights_.dtype, weights_.elements);
  if (shift_one_ && groups_->has_nodes()) {
    own_ = rank.allocate(Purpose::communication, weights_.dtype, weights_.elements);
  }
}

void DecentralizedAverage::raise_if_odd() const {
  if (shift_one_ && groups_->ranks() % 2 != 0) {
    throw ProgramException(
        site_id(swap_weights),
        fmt::format("shift_one pairs ranks, and there is an odd number of them: {}. In "
                    "hierarchical mode, which is the default, this is the number of nodes; use "
                    "hierarchical: false, an even number, or peer_selection_mode: all",
                    groups_->ranks()));
  }
}

void CommunicationInterval::add_step_kind(int64_t ahead, int64_t forwards,
                                          std::vector<int64_t>& kind) const {
  for (int64_t forward = 1; forward <= forwards && interval_ > 1; ++forward) {
    kind.push_back(is_due(forwards_ + ahead * forwards + forward) ? 1 : 0);
  }
}

// Each exchange meets the next peer, of half the members.
int64_t DecentralizedAverage::peers() const {
  return shift_one_ ? std::max(1, groups_->ranks() / 2) : 1;
}

void DecentralizedAverage::add_step_kind(int64_t ahead, int64_t forwards,
                                         std::vector<int64_t>& kind) const {
  interval_.add_step_kind(ahead, forwards, kind);
  kind.push_back((step_ + interval_.times_due(ahead * forwards)) % peers());
}

void DecentralizedAverage::add_place(int64_t forwards, std::vector<int64_t>& place) const {
  place.push_back(interval_.place(forwards));
  place.push_back((step_ + interval_.times_due(forwards)) % peers());
}

int64_t DecentralizedAverage::steps_of_cycle(int64_t forwards) const {
  const int64_t steps = interval_.steps_of_cycle(forwards);
  return shift_one_ ? common_cycle(steps, steps * peers()) : steps;
}

void DecentralizedAverage::leave_out(int64_t forwards) {
  step_ += interval_.times_due(forwards);
  interval_.leave_out(forwards);
}

Program DecentralizedAverage::forward_begins(Rank& rank, bool training) {
  if (!training) {
    co_return;
  }
  interval_.count_forward();
  if (!interval_.is_due()) {
    co_return;
  }
  raise_if_odd();
  const Ticket ready = rank.event({compute_stream, {}, site_id(copy_weights)});
  averaged_ = average(rank, ready);
  ++step_;
  exchanged_bytes_.push_back(weights_.bytes());
}

// The weights stay as they are: forward and backward read them.
Ticket DecentralizedAverage::average(Rank& rank, Ticket ready) {
  if (shift_one_) {
    return average_with_peer(rank, ready);
  }
  Ticket done = elementwise(rank, Kernel::copy, {weights_}, {average_}, 0,
                            {communication_stream, {ready}, site_id(copy_weights)});
  done = groups_->reduce_to_leader(rank, average_, true, done);
  if (groups_->takes_part() && groups_->ranks() > 1) {
    done = rank.all_reduce(groups_->group(), average_, Reduction::avg,
                           {communication_stream, {done}, site_id(average_weights)});
  }
  return done;
}

Ticket DecentralizedAverage::average_with_peer(Rank& rank, Ticket ready) {
  Slice own = weights_;
  if (groups_->has_nodes()) {
    own = own_;
    ready = elementwise(rank, Kernel::copy, {weights_}, {own}, 0,
                        {communication_stream, {ready}, site_id(copy_weights)});
    ready = groups_->reduce_to_leader(rank, own, true, ready);
  }
  if (!groups_->takes_part()) {
    return ready;
  }
  const int32_t peer = groups_->member(shift_one_peer(groups_->index(), groups_->ranks(), step_));
  GroupedCall swap(rank, {communication_stream, {ready}, site_id(swap_weights)});
  const Ticket swapped =
      swap.send(groups_->group(), own, peer).receive(groups_->group(), average_, peer).submit();
  elementwise(rank, Kernel::add, {own}, {average_}, 0,
              {communication_stream, {swapped}, site_id(swap_weights)});
  return elementwise(rank, Kernel::scale, {}, {average_}, 0.5,
                     {communication_stream, {}, site_id(swap_weights)});
}

void DecentralizedAverage::begin(Rank&, bool synchronise) { synchronises_ = synchronise; }

// copy_back_peer_weight; not under no_sync.
Program DecentralizedAverage::finish(Rank& rank) {
  if (!synchronises_ || !interval_.is_due()) {
    if (averaged_) {  // nobody takes it; the weights may change once they have been copied
      in_flight_ = rank.event({compute_stream, {averaged_}, site_id(take_weights)});
      averaged_ = {};
    }
    co_return;
  }
  Ticket done = rank.event({compute_stream, {}, site_id(take_weights)});
  if (groups_->takes_part()) {
    done = elementwise(rank, Kernel::copy, {average_}, {weights_}, 0,
                       {communication_stream, {done}, site_id(take_weights)});
  }
  done = groups_->send_from_leader(rank, weights_, done);
  averaged_ = {};
  in_flight_ = rank.event({compute_stream, {done}, site_id(take_weights)});
}

Program DecentralizedAverage::settle(Rank& rank) {
  co_await rank.settle(std::exchange(in_flight_, {}));
}

Program DecentralizedAverage::end(Rank& rank) {
  co_await settle(rank);
  // One that no backward has taken: it began under no_sync.
  const Ticket unused = rank.event({compute_stream, {averaged_}, site_id(take_weights)});
  averaged_ = {};
  co_await rank.settle(unused);
  rank.release(std::exchange(average_, {}));
  if (own_.buffer != no_buffer) {
    rank.release(std::exchange(own_, {}));
  }
}

}  // namespace lockstep
