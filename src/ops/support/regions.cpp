#include "ops/support/regions.h"

#include "ops/support/containers.h"

namespace selkie::ops {

using ir::Contents;
using ir::Known;
using sym::Expr;

namespace {

constexpr size_t then_region = 0;
constexpr size_t else_region = 1;

// An expression that is a under the first region's facts and b under the second's, if one of the two serves.
Expr common(const ForwardContext& c, Expr a, Expr b) {
  ir::ShapeServices& services = c.services();
  auto holds = [&](Expr e, size_t region) {
    return services.region_facts(region).prove_equal(a, b) == sym::Truth::yes && services.visible(e);
  };
  if (a == b) return services.visible(a) ? a : Expr();
  if (holds(b, then_region)) return b;
  if (holds(a, else_region)) return a;
  return {};
}

Expr join_dim(const ForwardContext& c, size_t result, size_t axis, Expr a, Expr b) {
  if (Expr same = common(c, a, b)) return same;
  ir::Bounds x = c.services().visible_bounds(a, then_region);
  ir::Bounds y = c.services().visible_bounds(b, else_region);
  ir::Bounds bounds;
  if (x.most && y.most) bounds.most = sym::max(x.most, y.most);
  if (x.least && y.least) bounds.least = sym::min(x.least, y.least);
  return c.unknown(result, axis, bounds);
}

Type join_types(const ForwardContext& c, size_t result, const Type& a, const Type& b) {
  if (a.kind != b.kind) return {};
  if (!a.is_tensor()) return visible_type(c, common_type(c, a, b));
  if (a.dtype != b.dtype) return {};
  if (!a.dims || !b.dims || a.dims->size() != b.dims->size()) return Type::tensor(a.dtype);
  SymDims dims;
  for (size_t i = 0; i < a.dims->size(); ++i) dims.push_back(join_dim(c, result, i, (*a.dims)[i], (*b.dims)[i]));
  return Type::tensor(a.dtype, std::move(dims));
}

}  // namespace

Known join_arms(const ForwardContext& c, size_t result, const Known& a, const Known& b) {
  Known out{.type = join_types(c, result, a.type, b.type), .contents = {}};
  if (!a.contents || !b.contents || a.contents->elements.size() != b.contents->elements.size() ||
      a.contents->denominator != b.contents->denominator)
    return out;
  out.contents =
      Contents{.denominator = a.contents->denominator, .rounded = a.contents->rounded || b.contents->rounded};
  for (size_t i = 0; i < a.contents->elements.size(); ++i) {
    Expr x = a.contents->elements[i];
    Expr y = b.contents->elements[i];
    out.contents->elements.push_back(x && y ? common(c, x, y) : Expr());
  }
  return out;
}

Known leave_arm(const ForwardContext& c, size_t result, Known value, size_t region) {
  if (!value.type.is_tensor()) value.type = visible_type(c, std::move(value.type));
  if (value.type.dims)
    for (size_t axis = 0; axis < value.type.dims->size(); ++axis) {
      Expr& dim = (*value.type.dims)[axis];
      if (!c.services().visible(dim)) dim = c.unknown(result, axis, c.services().visible_bounds(dim, region));
    }
  if (value.contents)
    for (Expr& e : value.contents->elements)
      if (e && !c.services().visible(e)) e = {};
  return value;
}

namespace {

class LoopFollower {
 public:
  LoopFollower(const ForwardContext& c, const LoopForm& form)
      : c_(c), form_(form), index_(c.services().trip_index()), state_(form.state) {}

  LoopShapes run() {
    // Each dim is tried as constant, then as growing, then given up: three rounds reach the fixpoint, more if dims
    // depend on each other.
    constexpr int rounds = 16;
    std::optional<std::vector<Known>> yields;
    for (int round = 0; round < rounds; ++round) {
      yields = trip(false);
      if (!yields) return without_trips();
      if (!widen(*yields, round + 1 == rounds)) break;
    }
    LoopShapes out;
    for (size_t i = 0; i < state_.size(); ++i) out.state.push_back(after_last_trip(i));
    out.skipped.assign(yields->begin(), yields->begin() + static_cast<std::ptrdiff_t>(form_.skipped));
    // What the body requires does not hold if there are no trips, but the outputs have a shape then, too.
    bool has_outputs = yields->size() > form_.skipped + state_.size();
    auto surely_runs = [&] { return c_.proves_less_equal(c_.constant(1), form_.trips); };
    if (has_outputs && !(surely_runs() && c_.services().adopt_assumptions(0))) {
      yields = trip(true);
      trip(false);  // leaves what is known of the body in its refined form
    }
    for (size_t i = form_.skipped + state_.size(); i < c_.node()->regions[0]->yields.size(); ++i)
      out.outputs.push_back(yields ? output_type((*yields)[i].type) : Type{});
    return out;
  }

 private:
  std::optional<std::vector<Known>> trip(bool tentative) {
    std::vector<Known> parameters = form_.leading;
    parameters.insert(parameters.end(), state_.begin(), state_.end());
    parameters.insert(parameters.end(), form_.trailing.begin(), form_.trailing.end());
    return c_.services().run_region(0, std::move(parameters), tentative, [&](sym::Facts& facts) {
      // That there is a trip does not hold if there is none.
      if (!tentative) facts.add_less_equal(index_ + 1, form_.trips, "the index of a trip");
    });
  }

  LoopShapes without_trips() {
    LoopShapes out{.state = form_.state, .outputs = {}, .skipped = std::vector<Known>(form_.skipped), .runs = false};
    std::optional<std::vector<Known>> yields = trip(true);
    for (size_t i = form_.skipped + form_.state.size(); i < c_.node()->regions[0]->yields.size(); ++i)
      out.outputs.push_back(yields ? output_type((*yields)[i].type) : Type{});
    trip(false);  // leaves the region as the one that is never entered
    return out;
  }

  Expr next_trip(Expr e) {
    return sym::substitute(e, [&](Expr s) { return s == index_ ? index_ + 1 : Expr(); });
  }

  bool mentions_index(Expr e) { return next_trip(e) != e; }

  // What a dim or element must be at the start of a trip, if it is `now` and the trip makes it `next`; null: no form.
  Expr follow(Expr initial, Expr now, Expr next) {
    const sym::Facts& facts = c_.services().region_facts(0);
    if (facts.prove_equal(next, next_trip(now)) == sym::Truth::yes) return now;
    if (now != initial || mentions_index(initial)) return {};
    Expr growth = facts.simplify(next - now);
    return c_.services().visible(growth) ? initial + growth * index_ : Expr();
  }

  // Whether anything had to be widened. In the last round everything that moves is given up.
  bool widen(const std::vector<Known>& yields, bool last) {
    bool widened = false;
    for (size_t i = 0; i < state_.size(); ++i) {
      Known before = state_[i];
      const Known& next = yields[form_.skipped + i];
      widen_type(i, next.type, last);
      widen_contents(i, next, last);
      widened = widened || !(before == state_[i]);
    }
    return widened;
  }

  void widen_type(size_t i, const Type& next, bool last) {
    Type& now = state_[i].type;
    if (now.kind != next.kind) {
      now = {};
      return;
    }
    if (!now.is_tensor()) {
      now = common_type(c_, now, next);
      return;
    }
    if (!now.dims) return;
    if (!next.dims || next.dims->size() != now.dims->size()) {
      now.dims.reset();
      return;
    }
    for (size_t axis = 0; axis < now.dims->size(); ++axis) {
      Expr& dim = (*now.dims)[axis];
      Expr unknown = c_.services().varying_dim(form_.leading.size() + i, axis);
      if (dim == unknown) continue;
      Expr form = last ? Expr() : follow((*form_.state[i].type.dims)[axis], dim, (*next.dims)[axis]);
      dim = form ? form : unknown;
    }
  }

  void widen_contents(size_t i, const Known& next, bool last) {
    std::optional<Contents>& now = state_[i].contents;
    if (!now) return;
    bool comparable = next.contents && next.contents->elements.size() == now->elements.size() &&
                      next.contents->denominator == now->denominator && !next.contents->rounded && !now->rounded &&
                      state_[i].type.dims;
    for (size_t k = 0; k < now->elements.size(); ++k) {
      Expr& element = now->elements[k];
      if (!element) continue;
      Expr after = comparable ? next.contents->elements[k] : Expr();
      element = after && !last ? follow(form_.state[i].contents->elements[k], element, after) : Expr();
    }
    if (std::none_of(now->elements.begin(), now->elements.end(), [](Expr e) { return static_cast<bool>(e); }))
      now.reset();
  }

  Expr at_end(Expr e) {
    return sym::substitute(e, [&](Expr s) { return s == index_ ? form_.trips : Expr(); });
  }

  Known after_last_trip(size_t i) {
    Known out = state_[i];
    if (out.type.dims) {
      for (size_t axis = 0; axis < out.type.dims->size(); ++axis) {
        Expr& dim = (*out.type.dims)[axis];
        dim = dim == c_.services().varying_dim(form_.leading.size() + i, axis) ? c_.unknown(i, axis) : at_end(dim);
      }
    }
    if (out.contents)
      for (Expr& e : out.contents->elements)
        if (e) e = at_end(e);
    return out;
  }

  // Dims that are the same for every trip; null where they are not.
  Type output_type(Type type) {
    for (size_t axis = 0; type.dims && axis < type.dims->size(); ++axis) {
      Expr& dim = (*type.dims)[axis];
      if (!c_.services().visible(dim) || mentions_index(dim)) dim = {};
    }
    return type;
  }

  const ForwardContext& c_;
  const LoopForm& form_;
  Expr index_;
  std::vector<Known> state_;
};

}  // namespace

LoopShapes follow_loop(const ForwardContext& c, const LoopForm& form) { return LoopFollower(c, form).run(); }

Type stacked(const ForwardContext& c, size_t result, const Type& one, Expr trips, int64_t axis) {
  if (!one.is_tensor() || !one.dims) return one;
  SymDims dims = *one.dims;
  dims.insert(dims.begin() + normalize_axis(axis, static_cast<int64_t>(dims.size()) + 1), trips);
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims[i]) dims[i] = c.unknown(result, i);
  return Type::tensor(one.dtype, std::move(dims));
}

void check_trip(EvalContext& e, int64_t trip) {
  const int64_t limit = e.services().limits().loop_trips;
  if (trip >= limit) fail("the loop has run {} trips, which is the limit", limit);
}

Tensor empty_output(const ir::EmptyResult& inferred, const Type& declared, int64_t axis) {
  if (!inferred.failure.empty())
    fail("there are no trips, and the body cannot run on such operands, so that its output has no shape: {}",
         inferred.failure);
  Dims dims;
  DType dtype = inferred.dtype;
  if (inferred.dims) {
    dims = *inferred.dims;
  } else if (declared.is_tensor()) {
    dtype = declared.dtype;
    for (Expr d : declared.dims.value_or(SymDims{})) dims.push_back(d.constant().value_or(0));
  }
  dims.insert(dims.begin() + normalize_axis(axis, static_cast<int64_t>(dims.size()) + 1), 0);
  return Tensor(dtype, std::move(dims));
}

}  // namespace selkie::ops
