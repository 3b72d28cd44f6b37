#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/build.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// What layers of images take, in messages.
inline constexpr std::string_view image_layout = "[channels, height, width]";

/// Takes the arguments of one layer by name or position and notes what is wrong with them. A value
/// that is missing or of the wrong type is replaced by the default, so that one pass over a layer
/// finds all of its errors.
class ArgumentReader {
 public:
  /// `positions`: torch's parameter names in order, for positional arguments. References must live.
  ArgumentReader(const LayerDescription& description, std::vector<std::string_view> positions);

  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = std::nullopt);
  double number(std::string_view name, double otherwise);
  bool boolean(std::string_view name, bool otherwise);
  std::string text(std::string_view name, std::string otherwise);
  /// A text; a truth value is the word `true` or `false`.
  std::string word(std::string_view name, std::string otherwise);
  /// One integer for both sides, or two.
  Pair pair(std::string_view name, std::optional<Pair> otherwise = std::nullopt);
  Shape shape(std::string_view name, std::optional<Shape> otherwise = std::nullopt);
  /// One integer, or a list of integers, of any sign.
  std::vector<int64_t> sizes(std::string_view name, std::optional<int64_t> otherwise);
  Time time(std::string_view name);
  Bytes bytes(std::string_view name);
  bool has(std::string_view name) const;
  /// An argument of torch that is modelled only where it has torch's default.
  void only(std::string_view name, const Argument& modelled);

  void complain(std::string message, std::string remedy);
  /// Of what torch has and Lockstep does not.
  void lack(std::string message, std::string remedy);
  /// Complains about every argument that nobody asked for.
  void finish();
  bool ok() const { return errors_.empty(); }
  const std::vector<NetworkError>& errors() const { return errors_; }

 private:
  int64_t in_range(std::string_view name, int64_t value);
  const Argument* take(std::string_view name);
  template <class T>
  T missing(std::string_view name, const std::optional<T>& otherwise, std::string_view what);
  void wrong_type(std::string_view name, std::string_view expected);

  const LayerDescription& description_;
  std::vector<std::string_view> names_;  ///< resolved, one for each argument; empty = one too many
  std::vector<bool> taken_;
  std::vector<std::string_view> known_;
  std::vector<NetworkError> errors_;
};

}  // namespace lockstep
