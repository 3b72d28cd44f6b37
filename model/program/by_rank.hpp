#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/core/ensure.hpp"
#include "model/program/rank_classes.hpp"

namespace lockstep {

/// A value for each rank, kept once for each class of ranks that share it.
template <class T>
class ByRank {
 public:
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = const T&;

    Iterator() = default;
    Iterator(const ByRank* values, difference_type rank) : values_(values), rank_(rank) {}

    reference operator*() const { return (*values_)[static_cast<size_t>(rank_)]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type by) const { return *(*this + by); }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return {values_, rank_++}; }
    Iterator operator--(int) { return {values_, rank_--}; }
    Iterator& operator+=(difference_type by) {
      rank_ += by;
      return *this;
    }
    Iterator& operator-=(difference_type by) { return *this += -by; }
    friend Iterator operator+(Iterator at, difference_type by) { return at += by; }
    friend Iterator operator+(difference_type by, Iterator at) { return at += by; }
    friend Iterator operator-(Iterator at, difference_type by) { return at -= by; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return a.rank_ - b.rank_;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.rank_ == b.rank_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.rank_ <=> b.rank_; }

   private:
    const ByRank* values_ = nullptr;
    difference_type rank_ = 0;
  };
  using const_iterator = Iterator;
  using value_type = T;

  ByRank() = default;
  /// Each rank has a value of its own.
  explicit ByRank(size_t ranks) : values_(ranks) {}
  ByRank(std::initializer_list<T> values) : values_(values) {}
  /// `classes`: null where each of `ranks` has a value of its own.
  ByRank(size_t ranks, std::shared_ptr<const RankClasses> classes)
      : classes_(std::move(classes)), values_(classes_ == nullptr ? ranks : classes_->size()) {}

  T& operator[](size_t rank) { return values_[place(rank)]; }
  const T& operator[](size_t rank) const { return values_[place(rank)]; }
  const T& at(size_t rank) const { return values_.at(place(rank)); }
  const T& front() const { return values_.front(); }
  const T& back() const { return (*this)[size() - 1]; }
  T& front() { return values_.front(); }
  size_t size() const { return classes_ == nullptr ? values_.size() : classes_->ranks(); }
  bool empty() const { return values_.empty(); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, static_cast<std::ptrdiff_t>(size())}; }

  /// Each value once, in the order of the first ranks that have it.
  std::span<const T> distinct() const { return values_; }
  std::span<T> distinct() { return values_; }
  /// How many ranks share the value at this place of `distinct`.
  size_t ranks_of(size_t place) const {
    return classes_ == nullptr ? 1 : classes_->ranks_in(place);
  }
  /// The first of them.
  size_t first_of(size_t place) const {
    return classes_ == nullptr ? place : static_cast<size_t>(classes_->first(place));
  }
  /// The first rank that has the same value as this one.
  size_t first_sharing(size_t rank) const { return first_of(place(rank)); }

  /// From here on each of so many ranks has a value of its own; those there were are kept.
  void resize(size_t ranks) {
    ensure(classes_ == nullptr, "ranks that share values do not get their own");
    values_.resize(ranks);
  }
  void push_back(T value) {
    ensure(classes_ == nullptr, "ranks that share values do not get their own");
    values_.push_back(std::move(value));
  }

 private:
  size_t place(size_t rank) const { return classes_ == nullptr ? rank : classes_->of(rank); }

  std::shared_ptr<const RankClasses> classes_;
  std::vector<T> values_;
};

}  // namespace lockstep
