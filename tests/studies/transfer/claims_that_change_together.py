"""Where one claim is false: the other claims that then have another verdict than where the paper is right."""

from __future__ import annotations

#: Mutant -> claims. Most follow from the same averages: what moves one row of Table 2 moves its order and its counts.
FOLLOWS: dict[str, str] = {
    "counts_by_z": (
        "bh_adds_four failure_taxonomy gain_floor rank_moves residual_none_improves t2_denseformer "
        "t2_gated_attn_qknorm t2_order t3_qknorm_geglu t3_selective_attn"
    ),
    "bonferroni_survivors": (
        "bh_adds_four bonferroni_names holm_same_as_bonferroni one_survivor_after_3b t2_hybrid_norm t2_layerscale"
    ),
    "bonferroni_names": (
        "bh_adds_four bonferroni_survivors holm_same_as_bonferroni one_survivor_after_3b sigma_baseline_largest "
        "soft_hard_no_predictor t2_hybrid_norm t2_order t2_qknorm t2_softpick t3_qknorm t3_softpick"
    ),
    "holm_same_as_bonferroni": "",
    "bh_adds_four": "t2_order t3_qknorm t3_sandwich_norm t3_selective_attn",
    "one_survivor_after_3b": "delta_3b_range rank_moves sign_preserved t3_order t3_relu_squared t3_softpick",
    "t2_softpick": (
        "attention_noise_band attention_six_of_eight bonferroni_names bonferroni_survivors bootstrap_disjoint "
        "counts_by_z gain_floor holm_same_as_bonferroni one_survivor_after_3b rank_moves sigma_baseline_largest "
        "sigma_three_refs sign_preserved soft_hard_no_predictor softpick_seeds spearman_7 t2_order t3_qknorm "
        "t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm t3_softpick "
        "welch_softpick"
    ),
    "t2_hybrid_norm": (
        "bonferroni_names bonferroni_survivors counts_by_z gain_floor holm_same_as_bonferroni one_survivor_after_3b "
        "rank_moves t2_order t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn "
        "t3_selective_qknorm"
    ),
    "t2_qknorm": (
        "attention_noise_band attention_six_of_eight bh_adds_four bootstrap_disjoint counts_by_z gain_floor "
        "rank_moves sigma_baseline_largest sigma_three_refs sign_preserved spearman_7 t2_order t3_qknorm "
        "t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm welch_qknorm"
    ),
    "t2_sandwich_norm": (
        "bh_adds_four counts_by_z gain_floor rank_moves sign_preserved spearman_7 t2_order t3_qknorm_geglu "
        "t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm"
    ),
    "t2_relu_squared": (
        "bh_adds_four counts_by_z gain_floor rank_moves relu2_nominal sign_preserved spearman_7 t2_order "
        "t3_qknorm_geglu t3_relu_squared t3_selective_attn t3_selective_qknorm"
    ),
    "t2_selective_attn": (
        "attention_noise_band attention_six_of_eight counts_by_z gain_floor rank_moves sign_preserved spearman_7 "
        "t2_order t3_qknorm_geglu t3_selective_attn t3_selective_qknorm"
    ),
    "t2_qknorm_geglu": (
        "bh_adds_four counts_by_z gain_floor qknorm_geglu_top_3b rank_moves t2_order t3_qknorm_geglu t3_selective_attn"
    ),
    "t2_gated_attn_qknorm": "bh_adds_four counts_by_z gain_floor rank_moves t2_order t3_qknorm_geglu t3_selective_attn",
    "t2_softmax_cap": (
        "attention_noise_band attention_six_of_eight bh_adds_four counts_by_z gain_floor rank_moves t2_order "
        "t3_qknorm_geglu t3_selective_attn"
    ),
    "t2_selective_qknorm": (
        "bh_adds_four counts_by_z gain_floor rank_moves t2_order t3_qknorm_geglu t3_selective_attn t3_selective_qknorm"
    ),
    "t2_value_residual": (
        "attention_noise_band attention_six_of_eight bh_adds_four counts_by_z gain_floor rank_moves t2_order "
        "t3_qknorm_geglu t3_selective_attn t3_selective_qknorm"
    ),
    "t2_geglu_ffn": (
        "bh_adds_four counts_by_z gain_floor geglu_equals_swiglu rank_moves t2_order t3_qknorm_geglu "
        "t3_selective_attn t3_selective_qknorm"
    ),
    "t2_denseformer": "bh_adds_four counts_by_z failure_taxonomy gain_floor residual_none_improves",
    "t2_diff_attn": (
        "attention_noise_band bh_adds_four counts_by_z diff_attn_nominal failure_taxonomy gain_floor t2_order"
    ),
    "t2_layerscale": (
        "bonferroni_survivors counts_by_z decoupling_attention_only failure_taxonomy gain_floor "
        "holm_same_as_bonferroni layerscale_uniform residual_none_improves t2_order"
    ),
    "t2_hyper": (
        "bonferroni_survivors counts_by_z failure_taxonomy gain_floor holm_same_as_bonferroni hyper_finite_1p2b "
        "hyper_uniform residual_none_improves t2_order"
    ),
    "t2_attnres": (
        "attnres_broad bonferroni_survivors counts_by_z decoupling_attention_only failure_taxonomy failures_3b "
        "gain_floor holm_same_as_bonferroni residual_none_improves sign_preserved spearman_7 t2_order"
    ),
    "t2_ssmax": (
        "attention_noise_band bonferroni_survivors climb_drop_points counts_by_z decoupling_attention_only "
        "decoupling_band failure_taxonomy gain_floor holm_same_as_bonferroni removing_softmax_normalization t2_order "
        "t3_attnres"
    ),
    "t2_sigmoid_attn": (
        "attention_noise_band attention_span bonferroni_survivors climb_drop_points counts_by_z "
        "decoupling_attention_only decoupling_band failure_taxonomy failures_3b gain_floor holm_same_as_bonferroni "
        "overshoot removing_softmax_normalization sigmoid_lambada sign_preserved soft_hard_no_predictor spearman_7 "
        "t2_order t3_attnres t3_sigmoid_attn"
    ),
    "t2_order": (
        "attention_noise_band attention_six_of_eight bh_adds_four bonferroni_names bootstrap_disjoint "
        "geglu_equals_swiglu one_survivor_after_3b qknorm_geglu_top_3b rank_moves relu2_nominal "
        "sigma_baseline_largest sigma_three_refs soft_hard_no_predictor softpick_seeds spearman_7 "
        "t2_gated_attn_qknorm t2_geglu_ffn t2_hybrid_norm t2_qknorm t2_qknorm_geglu t2_relu_squared t2_sandwich_norm "
        "t2_selective_attn t2_selective_qknorm t2_softmax_cap t2_softpick t2_value_residual t3_qknorm t3_qknorm_geglu "
        "t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm t3_softpick welch_qknorm "
        "welch_softpick"
    ),
    "baseline_mean_sigma": (
        "a100_direction a100_match a100_per_task attention_noise_band attention_six_of_eight attention_span "
        "attention_span_ratio attnres_broad baseline_seeds bh_adds_four bonferroni_names bonferroni_survivors "
        "bootstrap_disjoint counts_by_z diff_attn_nominal failure_taxonomy gain_floor holm_same_as_bonferroni "
        "hyper_finite_1p2b hyper_uniform layerscale_uniform one_survivor_after_3b overshoot relu2_nominal "
        "residual_none_improves sigma_three_refs soft_hard_no_predictor stouffer_qknorm stouffer_softpick t2_attnres "
        "t2_denseformer t2_diff_attn t2_gated_attn_qknorm t2_geglu_ffn t2_hybrid_norm t2_hyper t2_layerscale t2_order "
        "t2_qknorm t2_qknorm_geglu t2_relu_squared t2_sandwich_norm t2_selective_attn t2_selective_qknorm "
        "t2_sigmoid_attn t2_softmax_cap t2_softpick t2_ssmax t2_value_residual welch_qknorm welch_softpick"
    ),
    "baseline_seeds": (
        "a100_match baseline_mean_sigma softpick_seeds t2_attnres t2_denseformer t2_diff_attn t2_gated_attn_qknorm "
        "t2_geglu_ffn t2_hybrid_norm t2_hyper t2_layerscale t2_qknorm t2_qknorm_geglu t2_relu_squared "
        "t2_sandwich_norm t2_selective_attn t2_selective_qknorm t2_sigmoid_attn t2_softmax_cap t2_softpick t2_ssmax "
        "t2_value_residual t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn "
        "t3_selective_qknorm t3_sigmoid_attn t3_softpick"
    ),
    "softpick_seeds": (
        "bonferroni_names bonferroni_survivors bootstrap_disjoint counts_by_z failure_taxonomy one_survivor_after_3b "
        "rank_moves sigma_baseline_largest sigma_three_refs sign_preserved soft_hard_no_predictor spearman_7 "
        "stouffer_softpick t2_order t2_softpick t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm "
        "t3_selective_attn t3_selective_qknorm t3_softpick welch_softpick"
    ),
    "sigma_three_refs": (
        "a100_direction a100_match a100_per_task attention_noise_band attention_six_of_eight attention_span "
        "attnres_broad baseline_mean_sigma baseline_seeds bh_adds_four bonferroni_names bonferroni_survivors "
        "bootstrap_disjoint counts_by_z diff_attn_nominal failure_taxonomy gain_floor holm_same_as_bonferroni "
        "hyper_finite_1p2b layerscale_uniform one_survivor_after_3b overshoot rank_moves relu2_nominal "
        "residual_none_improves sign_preserved soft_hard_no_predictor softpick_seeds spearman_7 t2_diff_attn "
        "t2_hybrid_norm t2_hyper t2_layerscale t2_order t2_qknorm t2_relu_squared t2_sandwich_norm t2_selective_attn "
        "t2_softpick t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm "
        "t3_softpick welch_qknorm welch_softpick"
    ),
    "sigma_baseline_largest": "sigma_three_refs softpick_seeds",
    "welch_qknorm": "bootstrap_disjoint sigma_baseline_largest sigma_three_refs",
    "welch_softpick": "bootstrap_disjoint sigma_baseline_largest sigma_three_refs softpick_seeds stouffer_softpick",
    "bootstrap_disjoint": "sigma_baseline_largest sigma_three_refs softpick_seeds welch_qknorm welch_softpick",
    "stouffer_qknorm": "",
    "stouffer_softpick": "",
    "gain_floor": (
        "a100_direction a100_match a100_per_task attention_noise_band attention_six_of_eight attnres_broad "
        "baseline_mean_sigma baseline_seeds bh_adds_four bonferroni_names bonferroni_survivors bootstrap_disjoint "
        "counts_by_z diff_attn_nominal failure_taxonomy holm_same_as_bonferroni hyper_finite_1p2b layerscale_uniform "
        "one_survivor_after_3b overshoot relu2_nominal residual_none_improves sigma_three_refs soft_hard_no_predictor "
        "t2_diff_attn t2_hybrid_norm t2_hyper t2_layerscale t2_qknorm t2_relu_squared t2_sandwich_norm "
        "t2_selective_attn t2_softpick welch_qknorm welch_softpick"
    ),
    "attention_span": (
        "climb_drop_points decoupling_band failures_3b overshoot sigma_baseline_largest sigma_three_refs "
        "sigmoid_lambada sigmoid_other_tasks softpick_seeds stouffer_softpick t2_sigmoid_attn t2_softpick "
        "t3_sigmoid_attn t3_softpick welch_softpick"
    ),
    "attention_span_ratio": (
        "attention_span climb_drop_points decoupling_band failures_3b t2_sigmoid_attn t3_sigmoid_attn"
    ),
    "attention_six_of_eight": (
        "attention_noise_band bh_adds_four bootstrap_disjoint counts_by_z gain_floor rank_moves "
        "sigma_baseline_largest sigma_three_refs spearman_7 t2_order t2_qknorm t3_qknorm t3_qknorm_geglu "
        "t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm welch_qknorm"
    ),
    "attention_noise_band": (
        "attention_six_of_eight bh_adds_four counts_by_z gain_floor rank_moves t2_order t2_softmax_cap "
        "t2_value_residual t3_qknorm_geglu t3_selective_attn t3_selective_qknorm"
    ),
    "overshoot": (
        "attention_span climb_drop_points decoupling_band failures_3b sigmoid_lambada t2_order t2_sigmoid_attn "
        "t2_ssmax t3_sigmoid_attn"
    ),
    "soft_hard_no_predictor": (
        "attention_span bh_adds_four bonferroni_names bonferroni_survivors climb_drop_points counts_by_z "
        "decoupling_band diff_attn_nominal failure_taxonomy failures_3b holm_same_as_bonferroni one_survivor_after_3b "
        "overshoot rank_moves sigmoid_lambada sigmoid_other_tasks t2_diff_attn t2_order t2_sigmoid_attn t3_qknorm "
        "t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm t3_sigmoid_attn "
        "t3_softpick"
    ),
    "removing_softmax_normalization": (
        "attention_noise_band attention_span bonferroni_survivors climb_drop_points counts_by_z "
        "decoupling_attention_only decoupling_band failure_taxonomy failures_3b gain_floor holm_same_as_bonferroni "
        "overshoot sigmoid_lambada sign_preserved soft_hard_no_predictor spearman_7 t2_order t2_sigmoid_attn t2_ssmax "
        "t3_sigmoid_attn"
    ),
    "residual_none_improves": (
        "bh_adds_four counts_by_z gain_floor rank_moves t2_denseformer t2_order t3_qknorm_geglu t3_selective_attn "
        "t3_selective_qknorm"
    ),
    "geglu_equals_swiglu": (
        "bh_adds_four counts_by_z gain_floor rank_moves t2_geglu_ffn t2_order t3_qknorm_geglu t3_selective_attn "
        "t3_selective_qknorm"
    ),
    "relu2_nominal": (
        "bh_adds_four bonferroni_names bonferroni_survivors holm_same_as_bonferroni one_survivor_after_3b spearman_7 "
        "t2_order t2_relu_squared t3_qknorm t3_relu_squared t3_sandwich_norm"
    ),
    "diff_attn_nominal": "bh_adds_four bonferroni_survivors holm_same_as_bonferroni t2_diff_attn",
    "hyper_finite_1p2b": (
        "bonferroni_survivors counts_by_z failure_taxonomy gain_floor holm_same_as_bonferroni hyper_uniform "
        "residual_none_improves t2_hyper t2_order"
    ),
    "qknorm_geglu_top_3b": "delta_3b_range rank_moves t3_order t3_qknorm t3_qknorm_geglu",
    "failure_taxonomy": (
        "attention_noise_band bh_adds_four bonferroni_survivors climb_drop_points counts_by_z "
        "decoupling_attention_only decoupling_band diff_attn_nominal gain_floor holm_same_as_bonferroni "
        "layerscale_uniform removing_softmax_normalization residual_none_improves t2_diff_attn t2_layerscale t2_order "
        "t2_ssmax t3_attnres"
    ),
    "range_three_points": (
        "attention_span climb_drop_points decoupling_band failures_3b sigmoid_lambada sigmoid_other_tasks "
        "t2_sigmoid_attn t3_sigmoid_attn"
    ),
    "runs_3b": "ssmax_3b_divergence ssmax_rise_length t3_order t3_sigmoid_attn",
    "t3_qknorm_geglu": (
        "delta_3b_range qknorm_geglu_top_3b rank_moves sign_preserved spearman_7 t3_order t3_qknorm t3_relu_squared "
        "t3_sandwich_norm t3_selective_attn t3_selective_qknorm t3_softpick"
    ),
    "t3_qknorm": (
        "delta_3b_range rank_moves sign_preserved spearman_7 t3_order t3_relu_squared t3_sandwich_norm "
        "t3_selective_attn t3_selective_qknorm t3_softpick"
    ),
    "t3_selective_qknorm": (
        "delta_3b_range rank_moves sign_preserved spearman_7 t3_order t3_relu_squared t3_sandwich_norm "
        "t3_selective_attn t3_softpick"
    ),
    "t3_selective_attn": (
        "delta_3b_range rank_moves sign_preserved t3_order t3_relu_squared t3_sandwich_norm t3_softpick"
    ),
    "t3_sandwich_norm": "delta_3b_range rank_moves sign_preserved t3_order t3_relu_squared t3_softpick",
    "t3_softpick": "delta_3b_range one_survivor_after_3b rank_moves sign_preserved t3_order t3_relu_squared",
    "t3_relu_squared": "delta_3b_range sign_preserved t3_order",
    "t3_attnres": "failures_3b sign_preserved t3_order",
    "t3_sigmoid_attn": "failures_3b sign_preserved t3_order",
    "t3_baseline": (
        "t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm t3_selective_attn t3_selective_qknorm "
        "t3_sigmoid_attn t3_softpick"
    ),
    "t3_order": (
        "delta_3b_range qknorm_geglu_top_3b rank_moves spearman_7 t3_qknorm t3_qknorm_geglu t3_relu_squared "
        "t3_sandwich_norm t3_selective_qknorm t3_softpick"
    ),
    "sign_preserved": "delta_3b_range failures_3b t3_attnres t3_order t3_relu_squared",
    "delta_3b_range": "t3_qknorm_geglu t3_relu_squared",
    "failures_3b": (
        "attention_span climb_drop_points decoupling_band sigmoid_lambada sigmoid_other_tasks t2_attnres "
        "t2_sigmoid_attn t3_sigmoid_attn"
    ),
    "spearman_7": (
        "delta_3b_range qknorm_geglu_top_3b rank_moves t3_order t3_qknorm_geglu t3_relu_squared t3_sandwich_norm "
        "t3_selective_attn t3_selective_qknorm t3_softpick"
    ),
    "rank_moves": (
        "delta_3b_range qknorm_geglu_top_3b spearman_7 t3_order t3_qknorm t3_qknorm_geglu t3_sandwich_norm "
        "t3_selective_qknorm t3_softpick"
    ),
    "hybrid_nan_steps": "hybrid_pre_nan_grad hybrid_window",
    "hybrid_window": "hybrid_nan_steps hybrid_spike",
    "hybrid_pre_nan_grad": "hybrid_spike",
    "hybrid_spike": "",
    "baseline_3b_grad": "hybrid_pre_nan_grad",
    "ssmax_3b_divergence": "ssmax_rise_length",
    "ssmax_rise_length": "",
    "hyper_3b_divergence": "",
    "t7_val_loss_softpick": "t7_order",
    "t7_val_loss_qknorm": "t7_order",
    "t7_val_loss_baseline": (
        "a100_val_loss decoupling_attention_only decoupling_band loss_gap_nats loss_gap_pct winners_track_loss"
    ),
    "t7_val_loss_sigmoid_attn": "decoupling_band loss_gap_nats loss_gap_pct t7_order",
    "t7_val_loss_ssmax": "decoupling_band loss_gap_nats loss_gap_pct",
    "t7_val_loss_attnres": "",
    "t7_order": "decoupling_band loss_gap_pct",
    "loss_gap_pct": "attnres_broad decoupling_band loss_gap_nats t7_val_loss_attnres t7_val_loss_ssmax",
    "loss_gap_nats": "attnres_broad decoupling_band loss_gap_pct t7_val_loss_attnres t7_val_loss_ssmax",
    "climb_drop_points": "attention_span decoupling_band t2_order t2_sigmoid_attn t2_ssmax t3_attnres t3_sigmoid_attn",
    "decoupling_band": (
        "attention_span climb_drop_points loss_gap_nats loss_gap_pct t2_order t2_sigmoid_attn t2_ssmax t3_attnres "
        "t3_sigmoid_attn t7_val_loss_ssmax"
    ),
    "loss_ranking_misses": (
        "attnres_broad decoupling_attention_only decoupling_band loss_gap_nats loss_gap_pct t7_order "
        "t7_val_loss_attnres t7_val_loss_sigmoid_attn t7_val_loss_ssmax"
    ),
    "decoupling_attention_only": (
        "attnres_broad loss_gap_nats loss_gap_pct loss_ranking_misses t7_order t7_val_loss_attnres"
    ),
    "winners_track_loss": "",
    "sigmoid_lambada": (
        "a100_direction a100_per_task attention_failures_sharp_tasks layerscale_uniform stouffer_qknorm "
        "stouffer_softpick"
    ),
    "sigmoid_other_tasks": "attention_failures_sharp_tasks",
    "ssmax_uniform": "",
    "layerscale_uniform": "decoupling_attention_only t2_layerscale t2_order",
    "hyper_uniform": "",
    "attnres_broad": "",
    "attention_failures_sharp_tasks": "sigmoid_lambada",
    "improvers_keep_concentration": "",
    "failures_lose_concentration": "",
    "softmax_cap_inactive": "",
    "a100_match": (
        "a100_direction baseline_mean_sigma baseline_seeds softpick_seeds t2_attnres t2_denseformer t2_diff_attn "
        "t2_gated_attn_qknorm t2_geglu_ffn t2_hybrid_norm t2_hyper t2_layerscale t2_qknorm t2_qknorm_geglu "
        "t2_relu_squared t2_sandwich_norm t2_selective_attn t2_selective_qknorm t2_sigmoid_attn t2_softmax_cap "
        "t2_softpick t2_ssmax t2_value_residual t3_qknorm t3_qknorm_geglu t3_relu_squared t3_sandwich_norm "
        "t3_selective_attn t3_selective_qknorm t3_sigmoid_attn t3_softpick"
    ),
    "a100_per_task": "",
    "a100_val_loss": "",
    "a100_direction": "a100_match a100_per_task",
}
