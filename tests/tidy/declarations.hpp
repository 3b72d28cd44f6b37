#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tests/tidy/source.hpp"

namespace lockstep::tidy {

enum class Scope { namespace_body, type_body };

/// A function with a body, or any other declaration that ends with ';', at namespace or type scope.
struct Declaration {
  size_t begin = 0;  ///< its first letter
  size_t body = 0;   ///< the '{' of a function; elsewhere the end of the head: '=', '{' or ';'
  size_t end = 0;    ///< the closing '}' or ';'
  bool is_function = false;
  Scope scope = Scope::namespace_body;
  size_t type = nowhere;  ///< of a member: where the head of its type begins
};

/// The declarations of blanked code (see code_of), found by following braces. At namespace or type
/// scope a '{' opens, by the text between the last declaration and it (template lists left out):
///   a namespace    when the text begins with [inline] `namespace`, or is `extern "C"` alone;
///   a type         when it begins with class, struct, union or enum (attributes left out);
///   an initializer when it has a '=' outside of brackets, or no parameter list, and no `operator`;
///   a function     otherwise.
/// A function's '}' that is followed by ',' or '{' only closed a member's initializer of a
/// constructor. What is declared inside a function belongs to that function.
std::vector<Declaration> declarations_of(std::string_view code);

/// The first letter at or after `at` that is no `template <...>`, attribute, `alignas(...)` or
/// white space.
size_t skip_prefixes(std::string_view code, size_t at);
/// The first of `marks` in the head of a declaration outside of brackets, template lists included;
/// nowhere when there is none.
size_t find_outside(std::string_view head, std::string_view marks);

}  // namespace lockstep::tidy
