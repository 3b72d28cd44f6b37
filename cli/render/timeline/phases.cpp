#include "cli/render/timeline/phases.hpp"

#include <algorithm>

#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

Phases::Part Phases::part_of(const Row& row) {
  const auto is_at = [&row](std::string_view site) { return row.site == site_id(site); };
  if (row.kind == OpKind::copy) {
    return is_at(replica_sites::bring_batch) ? Part::batch : Part::none;
  }
  if (row.kind != OpKind::compute) {
    return Part::none;
  }
  if (is_optimizer(row)) {
    return Part::optimizer;
  }
  if (is_at(replica_sites::layer_forward) || is_at(replica_sites::loss_forward)) {
    return Part::forward;
  }
  if (is_at(replica_sites::layer_backward) || is_at(replica_sites::loss_backward) ||
      is_at(replica_sites::recompute)) {
    return Part::backward;
  }
  const bool bucket = is_at(ddp_sites::fill_bucket) || is_at(ddp_sites::empty_bucket);
  return bucket ? Part::after_backward : Part::none;
}

void Phases::push(Span::Kind kind, Time start, Time finish, bool unfinished) {
  Span span;
  span.kind = kind;
  span.track = track_;
  span.start = start;
  span.finish = finish;
  span.number = number_;
  span.unfinished = unfinished;
  spans_.push_back(span);
}

void Phases::leave_phase() {
  const Time finish = phase_pending_ ? never : phase_finish_;
  if (mark_ && (current_ == Part::forward || current_ == Part::backward)) {
    push(Span::Kind::micro_batch, phase_start_, finish);
    spans_.back().row = *mark_;
    current_ = Part::none;
  }
  switch (current_) {
    case Part::forward: push(Span::Kind::forward, phase_start_, finish); break;
    case Part::backward: push(Span::Kind::backward, phase_start_, finish); break;
    case Part::optimizer: push(Span::Kind::optimizer, phase_start_, finish); break;
    default: break;
  }
  current_ = Part::none;
  forward_ended_ = false;
  phase_pending_ = false;
}

void Phases::enter(Part part, Time start) {
  if (current_ != part || forward_ended_) {
    leave_phase();
    current_ = part;
    phase_start_ = start;
  }
}

void Phases::begin_micro_batch(const Row& mark) {
  leave_phase();
  mark_ = mark;
}

void Phases::begin_step(Time start) {
  if (has_steps_ && !step_) {
    step_ = batch_.value_or(start);
  }
}

void Phases::leave_step_after_optimizer() {
  if (step_ && updated_) {
    push(Span::Kind::step, *step_, *updated_);
    ++number_;
    step_.reset();
    updated_.reset();
    batch_.reset();
  }
}

// An operation that never started or ended leaves its phase open; a phase that never began has
// none.
void Phases::add_pending(Part part) {
  const bool continues =
      part == current_ || (part == Part::after_backward && current_ == Part::backward);
  phase_pending_ = phase_pending_ || (part != Part::none && part != Part::batch && continues &&
                                      !(part == Part::forward && forward_ended_));
}

void Phases::add(const Row& row, Time start, Time finish) {
  const Part part = part_of(row);
  if (finish == never) {
    add_pending(part);
    return;
  }
  if (part == Part::batch || part == Part::forward || part == Part::backward) {
    leave_step_after_optimizer();
  }
  if (part == Part::batch) {
    batch_ = current_ == Part::batch ? batch_ : start;
  } else if (part == Part::forward) {
    batch_ = batch_.value_or(start);
  } else if (part == Part::backward || part == Part::optimizer) {
    begin_step(start);
  }
  if (part == Part::after_backward) {
    phase_finish_ = current_ == Part::backward ? finish : phase_finish_;
  } else if (part != Part::none) {
    enter(part, start);
    phase_finish_ = finish;
  }
  if (part == Part::forward) {
    forward_ended_ = row.site == site_id(replica_sites::loss_forward);
  } else if (part == Part::optimizer) {
    updated_ = finish;
  }
  last_finish_ = std::max(last_finish_, finish);
}

void Phases::leave_out(int64_t steps) {
  leave_phase();
  leave_step_after_optimizer();
  number_ += steps;
}

void Phases::end(bool hangs) {
  const bool updates_on = current_ == Part::optimizer && phase_pending_;
  leave_phase();
  if (!updates_on) {
    leave_step_after_optimizer();
  }
  if (step_) {
    push(Span::Kind::step, *step_, hangs ? never : last_finish_, !hangs);
  }
}

}  // namespace lockstep::cli
